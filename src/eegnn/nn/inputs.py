"""Checks of what a model is given beside node features."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from eegnn import _check
from eegnn.graph import Adjacency
from eegnn.typing import Level

#: What a model is given, in this order.
INPUTS = ("x", "edge_index", "edge_attr", "batch", "edge_weight", "edge_label_index")


def check_devices(device: torch.device, *given: Any) -> None:
    """Refuse inputs that are not where the model is."""
    for name, value in zip(INPUTS, given, strict=True):
        _check.device(name, value, device, "the model is")


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
    """Return the graph with the pairs that are predicted for, if they are what is predicted for."""
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
    """Refuse what are no features of edges, and say so where something else was meant."""
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
