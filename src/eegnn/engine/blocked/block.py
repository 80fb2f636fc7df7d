"""Blocks: a graph cut into parts, each of which can be computed with little of the rest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from eegnn.graph import Adjacency
from eegnn.subgraph import neighborhood, select_nodes


@dataclass(frozen=True, repr=False)
class Block:
    """Some nodes, and what has to be known of the others to compute at them.

    Attributes:
        core: ``int64 [c]``, the nodes of the block, ascending.
        halo: ``int64 [h]``, the other nodes within so many hops, ring by ring.
        adj: the core first, then the halo, which is to be read: rows of its last ring are empty.
            Degrees are those of the whole graph, so what is propagated within the core is, number
            for number, what the whole graph would give.
    """

    core: Tensor
    halo: Tensor
    adj: Adjacency

    @property
    def nodes(self) -> Tensor:
        """Core, then halo: the nodes of ``adj``."""
        return torch.cat([self.core, self.halo])

    def __repr__(self) -> str:
        return f"Block(core={self.core.numel()}, halo={self.halo.numel()})"


class Blocks:
    """A graph whose nodes are divided into blocks; made by :func:`~eegnn.engine.blocked.partition`.

    ``blocks[i]`` is a :class:`Block` with a halo of one hop, made when it is asked for.

    Args:
        adj: the graph.
        cores: the nodes of each block, each node in exactly one, and none without nodes.

    Attributes:
        adj, cores: as given.
        assignment: ``int64 [n]``, the block of each node.
    """

    def __init__(self, adj: Adjacency, cores: Sequence[Tensor]) -> None:
        self.adj, self.cores = adj, list(cores)
        self.assignment = torch.empty_like(adj.degree)
        for index, core in enumerate(self.cores):
            self.assignment[core] = index

    @property
    def num_nodes(self) -> int:
        """Number of nodes of the graph."""
        return self.adj.num_nodes

    def __len__(self) -> int:
        return len(self.cores)

    def __getitem__(self, index: int) -> Block:
        return self.neighborhood(index)

    def __iter__(self) -> Iterator[Block]:
        return (self[index] for index in range(len(self)))

    def neighborhood(self, index: int, hops: int = 1, scratch: Tensor | None = None) -> Block:
        """A block with a halo of so many hops, at least one, for computing at its core.

        Args:
            index: which block.
            hops: how far the halo reaches.
            scratch: see :func:`~eegnn.subgraph.neighborhood`.
        """
        order = core = self.cores[index]
        for _ in range(hops):  # the nodes so far stay the first ones, in the same order
            adj, order = neighborhood(self.adj, order, scratch)
        return Block(core, order[core.numel() :], adj)

    def subgraph(self, index: int, hops: int) -> tuple[Tensor, Adjacency]:
        """A block and its halo with all edges between them, symmetric, for training.

        States within the core are those of the whole graph for the first ``hops`` steps; after
        that, nodes beyond the halo are missed. Degrees are those of the whole graph.

        Args:
            index: which block.
            hops: how far the halo reaches; 0 for the core alone.

        Returns:
            Its nodes, ``int64``, ascending; and the graph.
        """
        inside = torch.zeros_like(self.assignment, dtype=torch.bool)
        nodes = self.cores[index]
        inside[nodes] = True
        for _ in range(hops):
            _, nodes = neighborhood(self.adj, nodes)
            inside[nodes] = True
        adj = select_nodes(self.adj, inside)
        assert adj.nodes is not None
        return adj.nodes, adj

    def __repr__(self) -> str:
        return f"Blocks({len(self)}, num_nodes={self.num_nodes}, num_edges={self.adj.num_edges})"
