"""From the columns of an edge list to the entries of a CSR matrix, and to their values."""

from __future__ import annotations

import torch
from torch import Tensor

#: Types of devices that have no float64.
WITHOUT_FLOAT64 = {"mps"}


def widest_float(device: torch.device) -> torch.dtype:
    """Return float64, or float32 where the device has nothing wider."""
    return torch.float32 if device.type in WITHOUT_FLOAT64 else torch.float64


def match_columns(
    edge_index: Tensor, row: Tensor, col: Tensor, num_nodes: int, directed: bool
) -> tuple[Tensor, Tensor]:
    """Return pairs of a column of ``edge_index`` and a CSR entry that it describes, by entry.

    Args:
        edge_index: ``[2, E]``; self-loops describe nothing.
        row, col: ``[num_edges]`` each, the CSR entries in their order.
        num_nodes: number of nodes.
        directed: whether an edge describes the entry of its own direction alone; else one that is
            listed in one direction describes both entries of its pair of nodes.
    """
    source, target = edge_index.long()
    column = (source != target).nonzero().view(-1)
    source, target, n = source[column], target[column], num_nodes
    known = row * n + col  # ascending, as CSR entries are
    entry = torch.searchsorted(known, target * n + source)
    if not directed:
        against = torch.searchsorted(known, source * n + target)
        one_way = torch.bincount(entry, minlength=row.numel())[against] == 0
        entry = torch.cat([entry, against[one_way]])
        column = torch.cat([column, column[one_way]])
    entry, order = torch.sort(entry, stable=True)
    return column[order], entry


def share_of_edge(edge_index: Tensor, row: Tensor, col: Tensor, num_nodes: int) -> Tensor:
    """Return 1 / (columns that name the same undirected edge) for each column; 0 for self-loops.

    Args:
        edge_index: ``[2, E]``.
        row, col: ``[num_edges]`` each, the CSR entries in their order.
        num_nodes: number of nodes.
    """
    source, target = edge_index.long()
    is_edge = source != target
    known = torch.cat([row * num_nodes + col, row.new_full((1,), num_nodes**2)])  # ascending
    pair = torch.minimum(source, target) * num_nodes + torch.maximum(source, target)
    entry = torch.searchsorted(known, pair)  # anything for a self-loop, which counts for nothing
    count = torch.zeros_like(known).index_add_(0, entry, is_edge.long())
    share = count[entry].to(widest_float(edge_index.device)).reciprocal()
    return share.masked_fill(~is_edge, 0.0)


def weighted_values(
    weight: Tensor, row: Tensor, col: Tensor, opposite: Tensor, num_nodes: int
) -> tuple[dict[str, tuple[Tensor, Tensor]], Tensor]:
    """Return the CSR values of each normalisation, and the degrees, of a weighted graph.

    Args:
        weight: ``[num_edges]``, of each CSR entry.
        row, col: ``[num_edges]`` each, the CSR entries in their order.
        opposite: ``[num_edges]``, the entry of the same pair of nodes in the other direction.
        num_nodes: number of nodes.

    Returns:
        For ``"sum"``, ``"mean"`` and ``"sym"`` the values of the matrix and of its transpose,
        ``[num_edges]`` each; and the sums of the rows, ``[num_nodes]``.
    """
    transposed = weight.index_select(0, opposite)
    degree = weight.new_zeros(num_nodes).index_add(0, row, weight)
    positive = degree > 0
    divisor = torch.where(positive, degree, 1.0)  # gradients must not meet a division by zero
    inverse = torch.where(positive, divisor.reciprocal(), 0.0)
    root = torch.where(positive, divisor.rsqrt(), 0.0)
    scale = root[row] * root[col]
    values = {
        "sum": (weight, transposed),
        "mean": (weight * inverse[row], transposed * inverse[col]),
        "sym": (weight * scale, transposed * scale),
    }
    return values, degree
