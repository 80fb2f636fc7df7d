"""From nodes to graphs and back."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag
from torch_geometric.nn import global_add_pool, global_max_pool, global_mean_pool

from eegnn._tracing import is_traced
from eegnn.graph import Adjacency


def _add(h: Tensor, adj: Adjacency) -> Tensor:
    plain = h.dtype == torch.float32 and h.device.type == "cpu" and h.dim() == 2
    if plain and not _leaves_to_pyg(h) and h.size(0):
        # Bags of rows: a fifth of the time of PyG's scatter on batches of the size of ENZYMES and
        # Peptides-func. Gradients and tracing are left to PyG.
        rows = torch.arange(h.size(0), dtype=adj.ptr.dtype, device=h.device)
        return embedding_bag(rows, h, adj.ptr, mode="sum", include_last_offset=True)
    return _ADD(h, adj)


def _mean(h: Tensor, adj: Adjacency) -> Tensor:
    if _leaves_to_pyg(h):
        return _MEAN(h, adj)
    sizes = adj.ptr.diff().clamp(min=1)
    return _add(h, adj) / sizes.view(-1, *[1] * (h.dim() - 1))


def _leaves_to_pyg(h: Tensor) -> bool:
    return is_traced() or (torch.is_grad_enabled() and h.requires_grad)


def _pool(function: Callable[..., Tensor]) -> Callable[[Tensor, Adjacency], Tensor]:
    def pool(h: Tensor, adj: Adjacency) -> Tensor:
        batch = adj.batch
        if batch is None:  # PyG would infer one graph even where there is no node to pool
            batch = adj.degree.new_zeros(adj.num_nodes)
        return function(h, batch, size=adj.num_graphs)

    return pool


def _concat(h: Tensor, adj: Adjacency) -> Tensor:
    return torch.cat([POOLS[name](h, adj) for name in _CONCATENATED], dim=-1)


_CONCATENATED = ("add", "max", "mean")
_ADD, _MEAN = _pool(global_add_pool), _pool(global_mean_pool)
#: ``[n, d] → [graphs, d]``, or ``[graphs, 3d]``; a graph without nodes gets zeros.
POOLS: dict[str, Callable[[Tensor, Adjacency], Tensor]] = {
    "mean": _mean,
    "add": _add,
    "max": _pool(global_max_pool),
    "concat": _concat,
}


def pooled_channels(pool: str, channels: int) -> int:
    """Return the width of states after pooling."""
    return channels * (len(_CONCATENATED) if pool == "concat" else 1)


def spread(value: Tensor, adj: Adjacency) -> Tensor:
    """Give each node the value of its graph: ``[graphs, ...] → [n, ...]``."""
    if adj.batch is None:
        return value.expand(adj.num_nodes, *value.shape[1:])
    return value.index_select(0, adj.batch)
