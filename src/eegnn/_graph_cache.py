"""The graphs of the edge lists that were seen, so that none is sorted twice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary, WeakIdRef

from eegnn import _check
from eegnn._tracing import is_passing
from eegnn.graph import Adjacency

_SEEN: WeakIdKeyDictionary = WeakIdKeyDictionary()
#: A tensor, weakly, and its version counter: after a change it is another one.
_Reference = tuple[WeakIdRef, int]


def adjacency_of(
    edge_index: Tensor | Adjacency,
    num_nodes: int | None,
    batch: Tensor | None = None,
    batch_size: int | None = None,
    edge_weight: Tensor | None = None,
) -> Adjacency:
    """:meth:`Adjacency.from_edge_index`, remembering the edge lists it has seen.

    A training loop calls ``model(x, edge_index)`` thousands of times with one tensor; sorting its
    edges each time would cost as much as the model. The memory is weak (an entry goes when its
    tensor goes), and the tensor's version counter tells of changes made in place.

    Args:
        edge_index: as in :meth:`Adjacency.from_edge_index`, or an :class:`Adjacency`.
        num_nodes, batch, edge_weight: as there.
        batch_size: the number of graphs, as PyG calls it.
    """
    if isinstance(edge_index, Adjacency):
        if batch is not None or batch_size is not None:
            raise ValueError("batch must be given to Adjacency.from_edge_index, not here")
        adj = edge_index
    else:
        adj = _remembered(edge_index, num_nodes, batch, batch_size)
    if is_passing():
        adj = adj._map(lambda tensor: tensor)  # a copy, which keeps to itself what is made of it
    return adj if edge_weight is None else adj.weighted(edge_weight)


def adjacency_for(
    name: str,
    h: Any,
    edge_index: Tensor | Adjacency,
    batch: Tensor | None = None,
    batch_size: int | None = None,
    edge_weight: Tensor | None = None,
) -> Adjacency:
    """:func:`adjacency_of` for a layer with this name, which is called with states ``h``."""
    if isinstance(h, tuple | list):
        raise TypeError(
            f"h must be one tensor [n, channels], got a {type(h).__name__}: {name} needs edges "
            f"between nodes of one type (make a heterogeneous graph homogeneous by "
            f"data.to_homogeneous())"
        )
    _check.tensor("h", h)
    _check.device("edge_index", edge_index, h.device, "h is")
    adj = adjacency_of(edge_index, h.size(0), batch, batch_size, edge_weight)
    if adj.num_nodes != h.size(0):
        raise ValueError(f"h must have a row for each of {adj.num_nodes} nodes, got {h.size(0)}")
    return adj


def _remembered(
    edge_index: Tensor, num_nodes: int | None, batch: Tensor | None, num_graphs: int | None
) -> Adjacency:
    weak = isinstance(edge_index, Tensor) and not edge_index.requires_grad
    if not weak or edge_index.is_inference():  # no version counter
        return Adjacency.from_edge_index(edge_index, num_nodes, batch, num_graphs)
    sizes = (num_nodes, num_graphs)
    seen: _Seen | None = _SEEN.get(edge_index)
    if seen is not None and seen.fits(edge_index._version, sizes, batch):
        return seen.adj
    adj = Adjacency.from_edge_index(edge_index, num_nodes, batch, num_graphs)
    if is_passing():
        return adj
    # Reading a COO matrix counts as a change: its version is that after it was read.
    _SEEN[edge_index] = _Seen(edge_index._version, sizes, _reference(batch), adj)
    return adj


@dataclass(frozen=True)
class _Seen:
    """The graph of an edge list, and what it was made with."""

    version: int
    sizes: tuple[int | None, int | None]
    batch: _Reference | None
    adj: Adjacency

    def fits(
        self, version: int, sizes: tuple[int | None, int | None], batch: Tensor | None
    ) -> bool:
        """Whether it was made of an edge list of this version, and of a ``batch`` that is equal."""
        known = self.adj.batch
        if (self.version, self.sizes) != (version, sizes):
            return False
        if known is None or not isinstance(batch, Tensor):
            return known is batch
        if self.batch is not None and self.batch == _reference(batch):  # no look at a GPU's memory
            return True
        comparable = batch.dtype in (torch.int64, torch.int32) and batch.layout == torch.strided
        return comparable and batch.device == known.device and torch.equal(known, batch.long())


def _reference(tensor: Tensor | None) -> _Reference | None:
    """Return what is equal as long as it is the same tensor with the same numbers."""
    if not isinstance(tensor, Tensor) or tensor.is_inference():
        return None
    return WeakIdRef(tensor), tensor._version
