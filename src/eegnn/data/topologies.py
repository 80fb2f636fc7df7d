"""The six topologies of ECHO, each drawn with exactly the diameter that is asked for.

What is published is the kind of graph. Sizes are our choice, made so that with diameters uniform
over 17 … 40 the mean and the spread of nodes, edges and degrees are those of the benchmark's table;
``tests/data/test_topologies.py`` holds that table and compares.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array  # type: ignore[import-untyped]
from scipy.sparse.csgraph import (  # type: ignore[import-untyped]
    connected_components,
    shortest_path,
)

#: Each edge once, ``int64 [2, E]``; nodes are numbered from 0 without gaps.
Edges = NDArray[np.int64]
#: Draws a connected graph with this diameter, at least 4.
Topology = Callable[[np.random.Generator, int], Edges]

CHORD_CHANCE = 0.2
CHORD_HOPS = (2, 7)  # from, below
REMOVED = 0.2


def line(generator: np.random.Generator, diameter: int) -> Edges:
    """A path whose nodes have, with a chance of 20 %, one more edge, to a node 2 … 6 hops away.

    The path grows node by node. The number of hops of an additional edge is the largest of three
    draws from 2 … 6; its other end is a random node at that distance in the graph as it is then.
    (Distances along the path alone would give 1.7 nodes for each unit of diameter; the table has
    2.65.) Of the lengths between 1.5 and 4.5 times the diameter, the largest that has this diameter
    is taken; if none has, another path is grown.
    """
    while True:
        edges, diameters = _grow_line(generator, round(4.5 * diameter))
        lengths = np.flatnonzero(diameters == diameter)
        if lengths.size and lengths[-1] >= 1.5 * diameter:
            return edges[:, edges[1] < lengths[-1]]


def ladder(generator: np.random.Generator, diameter: int) -> Edges:
    """Two paths of ``diameter`` nodes joined by a rung at every node. Nothing is random."""
    return _grid(2, diameter)


def grid(generator: np.random.Generator, diameter: int) -> Edges:
    """A grid, each edge removed with a chance of 20 %, of which the largest component is kept.

    The shorter side is 14 % to 50 % of the sum of both sides, uniformly. The sum is that of a full
    grid of this diameter or up to three less, for detours; draws of another diameter are rejected.
    """
    while True:
        sides = diameter + 2 - int(generator.integers(4))
        rows = max(2, round(sides * generator.uniform(0.14, 0.5)))
        edges = _grid(rows, max(2, sides - rows))
        edges = _largest_component(edges[:, generator.random(edges.shape[1]) >= REMOVED])
        if _has_diameter(edges, diameter):
            return edges


def tree(generator: np.random.Generator, diameter: int) -> Edges:
    """A tree grown on a path by preferential attachment: node v gains a leaf with p ∝ degree(v)³.

    Growth starts from the path that is the diameter, for by attachment alone trees stay shallow,
    and only nodes that leave the diameter as it is are eligible. Between 0.55 and 1.65 nodes are
    added for each step of the path, uniformly.
    """
    path = diameter + 1
    total = path + round(diameter * generator.uniform(0.55, 1.65))
    parent = np.arange(-1, total - 1)
    degree = np.zeros(total)
    degree[:path] = 2
    degree[[0, diameter]] = 1
    # In a tree an end of the diameter is a farthest node, so this is each node's eccentricity.
    reach = np.zeros(total, dtype=np.int64)
    reach[:path] = np.maximum(np.arange(path), np.arange(path)[::-1])
    for node in range(path, total):
        weight = np.cumsum(np.where(reach[:node] < diameter, degree[:node], 0) ** 3)
        host = int(np.searchsorted(weight, generator.random() * weight[-1], side="right"))
        parent[node] = host
        degree[[host, node]] += 1
        reach[node] = reach[host] + 1
    return np.stack([parent[1:], np.arange(1, total)])


def caterpillar(generator: np.random.Generator, diameter: int) -> Edges:
    """Return a path with leaves: 0 … 11 of them, uniformly, each at a random inner node."""
    hosts = generator.integers(1, diameter, size=int(generator.integers(12)))
    return _with_leaves(diameter, hosts)


def lobster(generator: np.random.Generator, diameter: int) -> Edges:
    """Return a caterpillar whose leaves may bear leaves themselves.

    Between 0.88 and 2.78 nodes are added for each step of the path, uniformly. Half of them are
    joined to a random inner node of the path, the others to a random one of these leaves, wherever
    that does not lengthen the diameter.
    """
    extra = round(diameter * generator.uniform(0.88, 2.78))
    legs = generator.integers(1, diameter, size=extra - extra // 2)
    legs[0] = generator.integers(2, diameter - 1)  # one that can bear leaves
    bearing = diameter + 1 + np.flatnonzero((legs > 1) & (legs < diameter - 1))
    return _with_leaves(diameter, np.concatenate([legs, generator.choice(bearing, extra // 2)]))


TOPOLOGIES: dict[str, Topology] = {
    "line": line,
    "ladder": ladder,
    "grid": grid,
    "tree": tree,
    "caterpillar": caterpillar,
    "lobster": lobster,
}


def distances(edges: Edges) -> NDArray[np.int64]:
    """Return the numbers of hops ``[n, n]`` between the nodes of a connected graph."""
    return _hops(_matrix(edges)).astype(np.int64)


def _has_diameter(edges: Edges, diameter: int) -> bool:
    matrix = _matrix(edges)
    # The farthest node from a farthest node nearly always ends a longest path, so two searches
    # reject most graphs without a search from every node.
    end = int(_hops(matrix, 0).argmax())
    return bool(_hops(matrix, end).max() == diameter and _hops(matrix).max() == diameter)


def _hops(matrix: csr_array, source: int | None = None) -> NDArray[np.float64]:
    return shortest_path(matrix, unweighted=True, directed=False, indices=source)


def _matrix(edges: Edges) -> csr_array:
    n = int(edges.max()) + 1
    return csr_array((np.ones(edges.shape[1]), (edges[0], edges[1])), shape=(n, n))


def _grid(rows: int, columns: int) -> Edges:
    cell = np.arange(rows * columns).reshape(rows, columns)
    across = np.stack([cell[:, :-1].ravel(), cell[:, 1:].ravel()])
    return np.concatenate([across, np.stack([cell[:-1].ravel(), cell[1:].ravel()])], axis=1)


def _largest_component(edges: Edges) -> Edges:
    _, label = connected_components(_matrix(edges), directed=False)
    kept = label == np.bincount(label).argmax()
    renumbered = np.cumsum(kept) - 1
    return renumbered[edges[:, kept[edges[0]]]]


def _with_leaves(diameter: int, hosts: NDArray[np.int64]) -> Edges:
    """Return the path 0 … diameter, and one new node for each host."""
    path = np.stack([np.arange(diameter), np.arange(1, diameter + 1)])
    leaves = np.stack([hosts, diameter + 1 + np.arange(len(hosts))])
    return np.concatenate([path, leaves], axis=1)


def _grow_line(generator: np.random.Generator, n: int) -> tuple[Edges, NDArray[np.int64]]:
    """Edges (the newer node second), and the diameter of the first 0, 1, 2, … n nodes."""
    hops = np.zeros((n, n), dtype=np.int16)
    diameters = np.zeros(n + 1, dtype=np.int64)
    edges = []
    for node in range(1, n):
        edges.append((node - 1, node))
        row = hops[node - 1, :node] + 1
        if generator.random() < CHORD_CHANCE:
            ring = np.flatnonzero(row == generator.integers(*CHORD_HOPS, size=3).max())
            if ring.size:
                other = int(generator.choice(ring))
                edges.append((other, node))
                row = np.minimum(row, hops[other, :node] + 1)
                old = hops[:node, :node]
                np.minimum(old, row[:, None] + row, out=old)
        hops[node, :node] = hops[:node, node] = row
        diameters[node + 1] = hops[: node + 1, : node + 1].max()
    return np.array(edges).T, diameters
