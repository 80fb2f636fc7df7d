"""From nodes to graphs and back."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor
from torch_geometric.nn import global_add_pool, global_max_pool, global_mean_pool

from eegnn.graph import Adjacency


def _pool(function: Callable[..., Tensor]) -> Callable[[Tensor, Adjacency], Tensor]:
    def pool(h: Tensor, adj: Adjacency) -> Tensor:
        batch = adj.batch
        if batch is None:  # PyG would infer one graph even where there is no node to pool
            batch = adj.degree.new_zeros(adj.num_nodes)
        return function(h, batch, size=adj.num_graphs)

    return pool


#: ``[n, d] → [graphs, d]``. PyG's pools; a graph without nodes gets zeros.
POOLS: dict[str, Callable[[Tensor, Adjacency], Tensor]] = {
    "mean": _pool(global_mean_pool),
    "add": _pool(global_add_pool),
    "max": _pool(global_max_pool),
}


def spread(value: Tensor, adj: Adjacency) -> Tensor:
    """Give each node the value of its graph: ``[graphs, ...] → [n, ...]``."""
    if adj.batch is None:
        return value.expand(adj.num_nodes, *value.shape[1:])
    return value[adj.batch]
