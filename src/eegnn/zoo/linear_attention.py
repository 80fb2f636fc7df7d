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
    # [graphs, most nodes, heads, d]: padding has key 0 and adds nothing to either sum.
    query, mask = to_dense_batch(query, adj.batch, batch_size=adj.num_graphs)
    key, _ = to_dense_batch(key, adj.batch, batch_size=adj.num_graphs)
    value, _ = to_dense_batch(value, adj.batch, batch_size=adj.num_graphs)
    context = torch.einsum("bnhd,bnhe->bhde", key, value)
    total = torch.einsum("bnhd,bhde->bnhe", query, context)
    weight = torch.einsum("bnhd,bhd->bnh", query, key.sum(dim=1))
    return total[mask], weight[mask].unsqueeze(-1)
