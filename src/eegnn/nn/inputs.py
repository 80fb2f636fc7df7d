"""What a model is given: the names of its inputs and options, and the checks of the inputs."""

from __future__ import annotations

from typing import Any, TypedDict

import torch
from torch import Tensor

from eegnn import _check
from eegnn._graph_cache import adjacency_of
from eegnn.graph import Adjacency
from eegnn.nn.edge_mask import with_mask_of
from eegnn.typing import Level


class GraphInputs(TypedDict, total=False):
    """What may describe a graph beside ``x``, ``edge_index``, ``edge_attr`` and ``batch``.

    For the methods that only pass it on; :meth:`~eegnn.nn.model.GraphModel.forward` and
    :meth:`~eegnn.nn.model.GraphModel.predict` spell it out.
    """

    #: ``[E]``, see :meth:`Adjacency.weighted <eegnn.Adjacency.weighted>`.
    edge_weight: Tensor | None
    #: The number of graphs, where the last ones may have no nodes.
    batch_size: int | None
    #: ``[2, P]``, the pairs of nodes to predict for with ``level="edge"``, as PyG's
    #: ``RandomLinkSplit`` names them.
    edge_label_index: Tensor | None


class Options(TypedDict, total=False):
    """What can be changed in a prediction of a trained model."""

    #: Stop every unit after so many steps.
    max_layers: int | None
    #: A unit leaves once its probability of having left reaches this value: lower is earlier.
    #: ``None``: the paper's rule.
    exit_threshold: float | None
    #: Draw the Gumbel noise of training.
    sample: bool | None


def checked_inputs(
    model: Any,
    x: Tensor | None,
    edge_index: Tensor | Adjacency,
    edge_attr: Tensor | None = None,
    batch: Tensor | None = None,
    edge_weight: Tensor | None = None,
    batch_size: int | None = None,
    edge_label_index: Tensor | None = None,
) -> tuple[Tensor, Adjacency]:
    """Return features and graph as a model takes them; nothing is checked again after this.

    Args:
        model: a :class:`~eegnn.nn.model.GraphModel`.
        x, edge_index, edge_attr, batch, edge_weight, batch_size, edge_label_index: as in its
            ``forward``.
    """
    weight = model.encoder.bias
    given = {"x": x, "edge_index": edge_index, "edge_attr": edge_attr, "batch": batch}
    given |= {"edge_weight": edge_weight, "edge_label_index": edge_label_index}
    for name, value in given.items():
        _check.device(name, value, weight.device, "the model is")
    num_nodes = x.size(0) if isinstance(x, Tensor) and x.dim() == 2 else None
    adj = adjacency_of(edge_index, num_nodes, batch, batch_size, edge_weight)
    if x is None:
        if model.in_channels:
            raise ValueError(f"x must have shape [N, {model.in_channels}], got None")
        x = weight.new_zeros(adj.num_nodes, 0)
    _check.features("x", x, adj.num_nodes, model.in_channels, weight.dtype, sparse=True)
    check_kind(model, adj)
    check_edge_attr(edge_attr, adj, model.edge_dim, weight.dtype)
    adj = with_pairs_for(model.level, adj, edge_label_index)
    return x, with_mask_of(model, adj)


def check_kind(model: Any, adj: Adjacency) -> None:
    """Refuse a weighted or a directed graph where a model does not take it."""
    name = type(model).__name__
    if adj.weight is not None and not model.supports_edge_weight:
        raise ValueError(f"edge_weight was given, but {name} does not take it")
    if adj.is_directed and not model.supports_directed:
        raise ValueError(
            f"{name} needs an undirected graph, got a directed one: it is defined by, or its "
            f"theorems hold for, a symmetric matrix (directed=False uses each edge in both "
            f"directions)"
        )


def with_pairs_for(level: Level, adj: Adjacency, edge_label_index: Tensor | None) -> Adjacency:
    """Return the graph with the pairs to predict for, which it has with ``level="edge"`` alone."""
    if level != "edge":
        if edge_label_index is not None:
            raise ValueError(
                f"edge_label_index was given, but the model has level={level!r}: pairs of nodes "
                f"need level='edge'"
            )
        return adj
    if edge_label_index is not None:
        return adj.with_pairs(edge_label_index)
    if adj.pairs is None:
        raise ValueError(
            "edge_label_index is needed with level='edge': the pairs of nodes to predict for, "
            "int64 [2, P]"
        )
    return adj


def check_edge_attr(
    edge_attr: Tensor | None, adj: Adjacency, edge_dim: int | None, dtype: torch.dtype
) -> None:
    """Refuse what are no features of edges; the error names what may have been meant instead."""
    if edge_attr is None:
        return
    if isinstance(edge_attr, Tensor) and edge_attr.dim() == 1:
        if not edge_attr.is_floating_point() and edge_attr.numel() == adj.num_nodes:
            raise ValueError(
                f"edge_attr must have shape [E, edge_dim], got integers of shape "
                f"[{adj.num_nodes}], one for each node: if this is batch, call "
                f"model(x, edge_index, batch=batch)"
            )
        if edge_dim is None and edge_attr.numel() == adj.num_edge_columns:
            raise ValueError(
                f"edge_attr must have shape [E, edge_dim], got {list(edge_attr.shape)}, one number "
                f"for each edge: if these are weights, call "
                f"model(x, edge_index, edge_weight=edge_weight)"
            )
    if edge_dim is None:
        raise ValueError("edge_attr was given, but the model was built with edge_dim=None")
    _check.features("edge_attr", edge_attr, adj.num_edge_columns, edge_dim, dtype)
