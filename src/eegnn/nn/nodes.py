"""Predictions for some nodes of a graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from eegnn import _check
from eegnn.graph import Adjacency
from eegnn.nn.exits import Exits, Touched
from eegnn.nn.program import Program, execute_nodes, refuses_nodes
from eegnn.source import GraphSource, TensorGraph


def predict_nodes(
    model: Any,
    x: Tensor | None,
    graph: Tensor | Adjacency | GraphSource,
    given: tuple[Any, ...],
    nodes: Tensor | Sequence[int],
    max_nodes: int | None = None,
    **options: Any,
) -> tuple[Tensor, Exits]:
    """Return outputs ``[U, C]`` and exits of some nodes, those of the whole graph.

    What cannot be computed for a few nodes alone is computed for all of them, if they are at hand.

    Args:
        model: a :class:`~eegnn.nn.model.GraphModel`, in evaluation and without gradients.
        x, graph, nodes, max_nodes, options: as in ``model.predict``.
        given: its other inputs, ``edge_attr`` first.
    """
    if model.level != "node":
        raise ValueError("nodes goes with level='node': a graph is predicted from all its nodes")
    edge_attr = given[0]
    source = graph if isinstance(graph, GraphSource) else None
    if source is None:
        x, adj = model._enter(x, graph, *given)
        source = TensorGraph(x, adj)
    else:
        adj = _check_source(model, x, source, given)
    asked = check_nodes(nodes, source)
    program, reason = _program(model, adj, edge_attr, options)
    if program is None:
        if graph is source or max_nodes is not None:
            what = "max_nodes" if max_nodes is not None else "a graph that is read on demand"
            raise ValueError(f"{what} does not go with this model and input: {reason}")
        out, exits = model.evolve(model._encode(x), adj, edge_attr, **options)
        exits = exits.select(asked)
        exits.touched = Touched(adj.num_nodes, adj.num_edges)
        return out[asked], exits
    units, inverse = torch.unique(asked, return_inverse=True)
    if max_nodes is not None:
        _check.integer("max_nodes", max_nodes, at_least=units.numel())
    out, exits = execute_nodes(program, model._encode, source, units, max_nodes)
    return out[inverse], exits.select(inverse)


def check_nodes(nodes: Tensor | Sequence[int], source: GraphSource) -> Tensor:
    """Return indices of nodes as ``int64 [U]``, or refuse them."""
    found = torch.as_tensor(nodes, device=source.device)
    if found.dim() != 1:
        raise ValueError(f"nodes must have shape [U], got {list(found.shape)}")
    if not found.numel():
        return found.long()
    if found.is_floating_point() or found.dtype == torch.bool:
        raise TypeError(
            f"nodes must hold integers, got {found.dtype} (of a mask: mask.nonzero().view(-1))"
        )
    low, high = int(found.min()), int(found.max())
    if low < 0 or high >= source.num_nodes:
        raise ValueError(
            f"nodes must lie in 0 … {source.num_nodes - 1}, got {low if low < 0 else high}"
        )
    return found.long()


def _check_source(
    model: Any, x: Tensor | None, source: GraphSource, given: Sequence[Any]
) -> Adjacency:
    """Refuse what does not go with a source; return a graph without nodes, as they come later."""
    if x is not None:
        raise ValueError("x must be None: the features are those of the graph source")
    if any(value is not None for value in given):
        raise ValueError(
            "edge_attr, batch, edge_weight, batch_size and edge_label_index must be None with a "
            "graph source"
        )
    weight = model.encoder.bias
    _check.device("edge_index", source, weight.device, "the model is")
    rows = source.features(torch.empty(0, dtype=torch.int64, device=source.device))
    _check.features("x", rows, 0, model.in_channels, weight.dtype)
    return Adjacency.from_edge_index(torch.empty(2, 0, dtype=torch.int64, device=source.device), 0)


def _program(
    model: Any, adj: Adjacency, edge_attr: Tensor | None, options: dict[str, Any]
) -> tuple[Program | None, str | None]:
    """Return what is to be run for some nodes, or why all nodes have to be computed."""
    if not hasattr(model, "program") or getattr(model, "solver", "euler") != "euler":
        return None, f"{type(model).__name__} does not go step by step"
    if edge_attr is not None:
        return None, "features of edges are summed over the whole graph first"
    if adj.has_own_values:
        return None, "the graph has weights or a mask"
    program = model.program(adj, None, **options)
    reason = refuses_nodes(program, model.encoder.bias)
    return (program if reason is None else None), reason
