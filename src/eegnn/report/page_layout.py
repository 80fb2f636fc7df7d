"""Where to draw the nodes of a graph."""

from __future__ import annotations

import math
from collections import deque

import numpy as np
import numpy.typing as npt

from eegnn.graph import Adjacency

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

#: Neighbours of a node that enter a sample, so that a hub does not fill it alone.
_FAN_OUT = 6


def board_side(adj: Adjacency) -> int | None:
    """Return the side of a square board whose cells touch by sides and corners, numbered row by
    row, such as Minesweeper; ``None`` for any other graph."""
    side = math.isqrt(adj.num_nodes)
    if side < 2 or side * side != adj.num_nodes or adj.num_edges != 4 * (side - 1) * (2 * side - 1):
        return None
    source, target = adj.edge_index.numpy()
    rows = np.abs(source // side - target // side)
    columns = np.abs(source % side - target % side)
    return side if max(rows.max(), columns.max()) == 1 else None


def sample_nodes(adj: Adjacency, start: int, limit: int, seed: int = 0) -> Ints:
    """Choose at most ``limit`` nodes around ``start``, ascending.

    Breadth first, with a few random neighbours of each node; when a component is exhausted, the
    search goes on from a random node elsewhere.
    """
    rng = np.random.default_rng(seed)
    rowptr, col = adj.rowptr.numpy(), adj.col.numpy()
    elsewhere = iter(rng.permutation(adj.num_nodes))
    chosen: set[int] = {start}
    queue = deque([start])
    while len(chosen) < min(limit, adj.num_nodes):
        if not queue:
            queue.append(next(int(node) for node in elsewhere if int(node) not in chosen))
            chosen.add(queue[0])
        node = queue.popleft()
        around = col[rowptr[node] : rowptr[node + 1]]
        for other in rng.permutation(around)[:_FAN_OUT].tolist():
            if other not in chosen and len(chosen) < limit:
                chosen.add(other)
                queue.append(other)
    return np.array(sorted(chosen))


def spring_layout(num_nodes: int, edges: Ints, seed: int = 0, steps: int = 100) -> Floats:
    """Place nodes in the unit square, ``[n, 2]``: edges ``[2, E]``, each named once, pull, all
    nodes push (Fruchterman and Reingold). The work grows with the square of their number.
    """
    if num_nodes < 2:
        return np.full((num_nodes, 2), 0.5)
    place = 0.3 * np.random.default_rng(seed).normal(size=(num_nodes, 2))
    ideal = 1 / math.sqrt(num_nodes)
    # Weaker pull in a dense graph, which would become a point otherwise.
    crowd = max(1.0, math.sqrt(edges.shape[1] / num_nodes))
    for step in range(steps):
        gap = place[:, None] - place[None]
        square = np.einsum("ijk,ijk->ij", gap, gap) + 1e-6
        push = ideal**2 * np.einsum("ijk,ij->ik", gap, 1 / square)
        along = place[edges[0]] - place[edges[1]]
        pull = along * np.linalg.norm(along, axis=1, keepdims=True) / (ideal * crowd)
        force = push - 0.3 * ideal * place * num_nodes**0.5  # gravity keeps components close
        np.subtract.at(force, edges[0], pull)
        np.add.at(force, edges[1], pull)
        length = np.linalg.norm(force, axis=1, keepdims=True) + 1e-9
        cool = 0.1 * (1 - step / steps) + 1e-3
        place = place + force / length * np.minimum(length, cool)
    return to_unit_square(_spread_evenly(place) if num_nodes > 100 else place)


def _spread_evenly(place: Floats) -> Floats:
    """Move nodes along rays from the middle until each ring holds its share of a disc."""
    gap = place - np.median(place, axis=0)
    radius = np.linalg.norm(gap, axis=1, keepdims=True) + 1e-9
    rank = radius.argsort(axis=0).argsort(axis=0)
    return gap / radius * np.sqrt((rank + 1) / len(place))


def to_unit_square(place: Floats) -> Floats:
    """Scale positions to [0, 1]², keeping proportions; a far outlier is moved to the edge."""
    low, high = np.quantile(place, [0.005, 0.995], axis=0)
    span = max(float((high - low).max()), 1e-9)
    return np.clip(0.5 + (place - (low + high) / 2) / span, 0.0, 1.0)


def grid_shape(count: int) -> tuple[int, int]:
    """Return columns and rows of a wide grid with ``count`` cells."""
    columns = max(1, math.ceil(math.sqrt(1.5 * count)))
    return columns, max(1, math.ceil(count / columns))
