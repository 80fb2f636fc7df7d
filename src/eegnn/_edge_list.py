"""Edge lists in the forms that PyG knows, and what is checked of them."""

from __future__ import annotations

import math
import sys
import warnings
from typing import Any

import torch
from torch import Tensor
from torch_geometric.utils import to_edge_index

from eegnn import _check
from eegnn._tracing import is_traced

#: Graphs of a batch that may have no nodes. Results have a row for each of them.
MAX_EMPTY_GRAPHS = 2**20


def from_sparse(matrix: Any, num_nodes: int | None) -> tuple[Tensor, Tensor | None]:
    """Return the edges of a sparse adjacency matrix as ``edge_index``, and their weights.

    Args:
        matrix: ``[n, n]``, a sparse tensor of PyTorch or a ``SparseTensor``. As everywhere in PyG
            it is transposed, ``adj_t``: a row holds the edges that end at its node.
        num_nodes: :math:`n`, if it is known.

    Returns:
        ``[2, E]`` in the order of the entries, and ``[E]``, or ``None`` if all weights are 1.
    """
    n, m = matrix.size(0), matrix.size(1)
    if n != m or num_nodes not in (None, n):
        wanted = "[n, n]" if num_nodes is None else f"[{num_nodes}, {num_nodes}]"
        raise ValueError(f"edge_index must have shape {wanted} if it is sparse, got [{n}, {m}]")
    if isinstance(matrix, Tensor) and matrix.layout == torch.sparse_coo:
        matrix = matrix.coalesce()
    edge_index, weight = to_edge_index(matrix)
    if weight.dim() != 1:
        raise ValueError(
            f"edge_index must hold one weight an edge if it is sparse, got values of shape "
            f"{list(weight.shape)}: give the edges as [2, E], and edge_attr beside them"
        )
    weight = weight if weight.is_floating_point() else weight.float()
    plain = not weight.requires_grad and bool((weight == 1).all())
    return edge_index.flip(0), None if plain else weight


def check_edge_index(edge_index: Tensor, name: str = "edge_index") -> Tensor:
    """Return an edge list ``[2, E]`` as a plain tensor."""
    _check.tensor(name, edge_index)
    if edge_index.dim() != 2 or edge_index.size(0) != 2:
        raise ValueError(f"{name} must have shape [2, E], got {list(edge_index.shape)}")
    if edge_index.dtype not in (torch.int64, torch.int32):
        raise TypeError(f"{name} must have dtype int64 or int32, got {edge_index.dtype}")
    return edge_index.as_subclass(Tensor)


def infer_num_nodes(edge_index: Tensor, batch: Tensor | None) -> int:
    """Return the length of ``batch``, else the largest index plus one."""
    if isinstance(batch, Tensor) and batch.dim() == 1:
        return batch.numel()
    return max(int(edge_index.max()) + 1, 0) if edge_index.numel() else 0


def read(*values: Tensor) -> list[int]:
    """Return single integers, for which a GPU is waited for once."""
    return torch.stack([value.long() for value in values]).tolist()


def check_values(
    edge_index: Tensor, num_nodes: int, batch: Tensor | None, num_graphs: int | None
) -> tuple[Tensor | None, int, bool]:
    """Refuse indices that are no nodes, and graphs that do not follow one another.

    Returns:
        A copy of ``batch``, the number of graphs, and whether there are self-loops.
    """
    if batch is not None:
        batch = _check_batch(batch, num_nodes, edge_index)
    values = [(edge_index[0] == edge_index[1]).any()]
    if edge_index.numel():
        values += torch.aminmax(edge_index)
    if batch is not None and num_nodes:
        values += [batch[0], batch[-1], (batch.diff() < 0).any()]
    has_loops, *found = read(*values)
    if edge_index.numel():
        _check_range(found.pop(0), found.pop(0), num_nodes)
    first, last, descends = found or (0, -1, 0)
    if first < 0 or descends:
        raise ValueError("batch must be non-negative and ascending, one graph after the other")
    if batch is None:
        if num_graphs not in (None, 1):
            raise ValueError(f"{num_graphs} graphs need batch, the graph of each node")
        return None, 1, bool(has_loops)
    most = num_nodes + MAX_EMPTY_GRAPHS
    if last >= most:
        raise ValueError(f"batch holds the graph {last}, but there are only {num_nodes} nodes")
    count = _check.integer(
        "num_graphs", last + 1 if num_graphs is None else num_graphs, last + 1, most
    )
    return batch, count, bool(has_loops)


def _check_range(low: int, high: int, num_nodes: int) -> None:
    """Refuse indices that are no nodes."""
    if low < 0:
        raise ValueError(f"edge_index holds {low}; indices of nodes start at 0")
    if high >= num_nodes:
        raise ValueError(
            f"edge_index holds the node {high}, but with num_nodes={num_nodes} "
            f"indices must be below {num_nodes}"
        )


def _check_batch(batch: Tensor, num_nodes: int, edge_index: Tensor) -> Tensor:
    """Return a copy of ``batch``, the graph of each node."""
    _check.tensor("batch", batch)
    if batch.dtype not in (torch.int64, torch.int32):
        raise TypeError(f"batch must have dtype int64, got {batch.dtype}")
    if batch.shape != (num_nodes,):
        raise ValueError(f"batch must have shape [{num_nodes}], got {list(batch.shape)}")
    _check.device("batch", batch, edge_index.device, "edge_index is")
    return batch.to(torch.int64, copy=True)  # later changes to the caller's tensor stay outside


def refuse_crossing(edge_index: Tensor, batch: Tensor) -> None:
    """Name the first edge that joins two graphs."""
    crossing = batch[edge_index[0]] != batch[edge_index[1]]
    u, v = edge_index[:, int(crossing.nonzero()[0])].tolist()
    raise ValueError(
        f"edge_index joins node {u} of graph {int(batch[u])} with node {v} of graph "
        f"{int(batch[v])}; an edge must stay within a graph of the batch"
    )


def check_edge_weight(edge_weight: Tensor, num_columns: int) -> None:
    """Refuse what is not a finite and non-negative number for each column of ``edge_index``."""
    _check.tensor("edge_weight", edge_weight)
    if edge_weight.shape != (num_columns,):
        raise ValueError(
            f"edge_weight must have shape [{num_columns}], one number for each column of "
            f"edge_index, got {list(edge_weight.shape)}; features of edges are edge_attr"
        )
    if not edge_weight.is_floating_point():
        raise TypeError(f"edge_weight must be floating point, got {edge_weight.dtype}")
    if num_columns and not is_traced():
        low, high = torch.stack(torch.aminmax(edge_weight.detach())).tolist()
        if not (low >= 0 and high < math.inf):
            raise ValueError(
                f"edge_weight must be finite and non-negative, since degrees are sums of it, "
                f"got values from {low:g} to {high:g}"
            )


def matrix_entries(
    edge_index: Tensor, n: int, directed: bool | None, has_loops: bool, batch: Tensor | None
) -> tuple[Tensor, Tensor | None]:
    """Return the CSR entries as ``row * n + col``, ascending, and ``Adjacency.listed``."""
    source, target = edge_index.long()
    key = target * n + source
    key = torch.unique(key[source != target] if has_loops else key)
    row, col = key // max(n, 1), key % max(n, 1)
    transposed = torch.sort(col * n + row).values
    crosses = row[:0] if batch is None else batch[row] != batch[col]
    is_symmetric, is_crossing = read((key == transposed).all(), crosses.any())
    if batch is not None and is_crossing:
        refuse_crossing(edge_index, batch)
    if is_symmetric:
        return key, None
    if directed is None:
        warnings.warn(
            "edge_index is directed; each edge is used in both directions "
            "(to say so yourself: torch_geometric.utils.to_undirected, or for NeighborLoader "
            "subgraph_type='bidirectional'; to keep directions: "
            "Adjacency.from_edge_index(edge_index, directed=True))",
            stacklevel=_caller_level(),
        )
    both = torch.unique(torch.cat([key, transposed]))
    if not directed:
        return both, None
    listed = torch.zeros(both.numel(), dtype=torch.bool, device=both.device)
    listed[torch.searchsorted(both, key)] = True
    return both, listed


def _caller_level() -> int:
    """Stack level of the first caller outside the library, so that warnings point there."""
    level, frame = 2, sys._getframe(2)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] in (
        "eegnn",
        "torch",
    ):
        level, frame = level + 1, frame.f_back
    return level
