"""The part of a graph that has been read so far, which grows where it is asked to."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from eegnn.graph import Adjacency, row_pointer
from eegnn.source import GraphSource, ranges


class OverBudgetError(Exception):
    """More nodes would have to be read than may be."""


class Buffer:
    """A tensor that grows by rows.

    Args:
        like: a tensor of the same dtype and device, whose other dimensions the rows have.
    """

    def __init__(self, like: Tensor) -> None:
        self.size, self._room = 0, like.new_empty(256, *like.shape[1:])

    @property
    def values(self) -> Tensor:
        """The rows so far."""
        return self._room[: self.size]

    def extend(self, count: int) -> Tensor:
        """Add rows, and return them to be written."""
        start, self.size = self.size, self.size + count
        if self.size > self._room.size(0):
            room = self._room.new_empty(2 * self.size, *self._room.shape[1:])
            room[:start] = self._room[:start]
            self._room = room
        return self._room[start : self.size]


class Part(NamedTuple):
    """Some nodes with what is seen from them.

    Attributes:
        nodes: ``int64``, numbers in the neighborhood: the ``adj.num_targets`` nodes first, then
            those within some hops of them, hop by hop.
        adj: the graph of these; all but those of the last hop have their entries.
    """

    nodes: Tensor
    adj: Adjacency

    @property
    def targets(self) -> Tensor:
        """The nodes for which it was made."""
        return self.nodes[: self.adj.num_targets]


class GrowingNeighborhood:
    """Nodes that have been read, numbered in this order, and the neighbours of some of them.

    Args:
        source: the graph.
        nodes: ``int64``, different nodes to begin with.
        max_nodes: how many nodes may be read.

    Attributes:
        nodes: ``int64 [k]``, the nodes as numbered by the source.
        num_edges: how many entries of neighbour lists have been read.
    """

    def __init__(self, source: GraphSource, nodes: Tensor, max_nodes: int | None) -> None:
        self.source, self.max_nodes, self.num_edges = source, max_nodes, 0
        # The number of each node plus one, 0 where it has none. Memory that NumPy has not written
        # to takes neither time nor room, whatever the size of the graph.
        number = torch.from_numpy(np.zeros(source.num_nodes, dtype=np.int32))
        self._number = number.to(source.device)
        self._nodes, self._degree = Buffer(nodes), Buffer(nodes)
        self._begin, self._count = Buffer(nodes), Buffer(nodes)  # of its list; -1: was not read
        self._col = Buffer(self._number)
        self._add(nodes)

    @property
    def nodes(self) -> Tensor:
        """Nodes that have been read, as the source numbers them, ``int64 [k]``."""
        return self._nodes.values

    def part(self, targets: Tensor, hops: int) -> Part:
        """Return what is within so many hops of some nodes; lists that it takes are read.

        Raises:
            OverBudgetError: more nodes would have to be read than may be.
        """
        nodes = last = targets
        cols, counts = [], []
        for _ in range(hops):
            self._read(last)
            count = self._count.values.index_select(0, last)
            begin = self._begin.values.index_select(0, last)
            col = self._col.values.index_select(0, ranges(begin, count))
            place = col.new_full((self._nodes.size,), -1)
            place[nodes] = 0
            last = _first_of_each(col[place.index_select(0, col) < 0], place).long()
            nodes = torch.cat([nodes, last])
            cols.append(col)
            counts.append(count)
        place[nodes] = torch.arange(nodes.numel(), dtype=place.dtype, device=place.device)
        counts.append(torch.zeros_like(last))
        adj = Adjacency(
            rowptr=row_pointer(torch.cat(counts), place.dtype),
            col=place.index_select(0, torch.cat(cols)),
            degree=self._degree.values.index_select(0, nodes),
        )
        adj.num_targets = targets.numel()
        return Part(nodes, adj)

    def _read(self, rows: Tensor) -> None:
        """Read the neighbours of nodes whose neighbours are not known."""
        rows = rows[self._begin.values.index_select(0, rows) < 0]
        if not rows.numel():
            return
        if self.max_nodes is not None and int(self._degree.values[rows].max()) >= self.max_nodes:
            raise OverBudgetError  # a hub is known by its degree: its list need not be read
        count, col = self.source.neighbors(self.nodes[rows])
        self.num_edges += col.numel()
        self._add(col)
        local = self._number.index_select(0, col) - 1
        begin = count.cumsum(0) - count + self._col.size
        self._begin.values[rows], self._count.values[rows] = begin, count
        self._col.extend(col.numel())[:] = local

    def _add(self, nodes: Tensor) -> None:
        """Number those nodes that have no number yet; one may be named more than once."""
        if nodes.numel() and not 0 <= int(nodes.min()) <= int(nodes.max()) < len(self._number):
            raise ValueError(
                f"the neighbours that {self.source!r} returned must lie in 0 … "
                f"{self.source.num_nodes - 1}, got {int(nodes.min())} … {int(nodes.max())}"
            )
        new = _first_of_each(nodes[self._number.index_select(0, nodes) == 0], self._number)
        new = new.long().sort().values  # rows of a file are read in its order
        size = self._nodes.size
        if self.max_nodes is not None and size + new.numel() > self.max_nodes:
            self._number[new] = 0
            raise OverBudgetError
        self._nodes.extend(new.numel())[:] = new
        self._degree.extend(new.numel())[:] = self.source.degree(new)
        self._begin.extend(new.numel())[:] = -1
        self._count.extend(new.numel())
        numbers = torch.arange(size + 1, self._nodes.size + 1, device=new.device)
        self._number[new] = numbers.to(self._number.dtype)


def _first_of_each(index: Tensor, scratch: Tensor) -> Tensor:
    """Return each number in ``index`` once, in any order, without sorting.

    Args:
        index: integers.
        scratch: an integer tensor that is overwritten at these numbers.
    """
    order = torch.arange(index.numel(), dtype=scratch.dtype, device=index.device)
    scratch[index.long()] = order
    return index[scratch.index_select(0, index) == order]
