"""Attention whose kernel is a product, so that its cost is linear in the nodes."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.utils import to_dense_batch

from eegnn.graph import Adjacency


def linear_attention(
    query: Tensor, key: Tensor, value: Tensor, adj: Adjacency
) -> tuple[Tensor, Tensor]:
    r"""Return, for each node :math:`i` and head, :math:`\sum_j (\mathbf{q}_i^\top\mathbf{k}_j)
    \mathbf{v}_j` and :math:`\sum_j \mathbf{q}_i^\top\mathbf{k}_j` over the nodes of its graph.

    Args:
        query, key, value: ``[n, heads, d]``.
        adj: says which nodes form a graph.

    Returns:
        ``[n, heads, d]`` and ``[n, heads, 1]``.
    """
    # Padding has key 0 and adds nothing to either sum.
    query, mask = _padded(query, adj)
    key, _ = _padded(key, adj)
    value, _ = _padded(value, adj)
    context = torch.einsum("bnhd,bnhe->bhde", key, value)
    total = torch.einsum("bnhd,bhde->bnhe", query, context)
    weight = torch.einsum("bnhd,bhd->bnh", query, key.sum(dim=1))
    return total[mask], weight[mask].unsqueeze(-1)


def _padded(x: Tensor, adj: Adjacency) -> tuple[Tensor, Tensor]:
    """``[graphs, most nodes, …]``, zeros where a graph has fewer nodes, and where it has some."""
    return to_dense_batch(x, adj.batch, batch_size=adj.num_graphs)
