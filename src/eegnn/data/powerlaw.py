"""Large graphs with power-law degrees and planted labels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data

from eegnn import _check
from eegnn.data.npz import problem_from_pyg
from eegnn.data.problem import Problem

#: Nodes of the full size.
NODES = 1_000_000
CLASSES, FEATURES = 8, 16
#: Nodes of a community, but of small graphs at most a sixteenth; the number of communities grows
#: with the graph, so that all sizes look alike nearby.
COMMUNITY = 1000
#: Mean degree: 10⁶ nodes have 10⁷ columns of ``edge_index``, each edge in both directions.
DEGREE = 10
#: The tail of the degrees is that of P(d) ~ d^−2.5.
EXPONENT = 2.5
#: Share of the edges that stay within a community, and the largest weight of a node in its own.
INSIDE, LOCAL = 0.8, 10.0
#: Length of the mean of a class, where the noise of each feature has deviation 1.
SIGNAL = 0.7


def powerlaw(nodes: int = NODES, seed: int = 0) -> Data:
    r"""Generate a graph: the label of a node is that of its community, features are weak hints.

    A degree-corrected planted partition. Nodes belong to communities of 1000, and all nodes of a
    community have one of 8 labels. Node :math:`i` has a weight :math:`w_i` with
    :math:`P(w > t) = t^{-1.5}`, at most :math:`\sqrt n`. One edge in five joins any two nodes,
    drawn by weight: the degrees have a tail with exponent 2.5. The others join two nodes of a
    community, drawn by weight up to 10. Self-loops, and edges drawn twice, are drawn again, until
    the mean degree is 10.

    Features are :math:`x_i = \mu_{y_i} + \varepsilon`, 16 numbers with noise of deviation 1 and
    means of length 0.7: a node's own features tell little of its label, the mean over its
    neighbourhood nearly all.

    Args:
        nodes: number of nodes, at least 1000.
        seed: the same seed gives the same graph.

    Returns:
        PyG ``Data`` with ``x [n, 16]``, ``edge_index [2, 10 n]`` (both directions) and ``y``.
    """
    n = _check.integer("nodes", nodes, at_least=COMMUNITY)
    rng = np.random.default_rng(_check.integer("seed", seed, at_least=0))
    near, far = cumulative_weights(n, rng)
    size = min(COMMUNITY, n // (2 * CLASSES))
    community = np.arange(n) // size
    label = rng.permutation(np.arange(community[-1] + 1) % CLASSES)
    edges = _edges(near, far, size, rng)
    node = rng.permutation(n)  # as in real graphs, nodes are not numbered by community
    y = np.empty(n, dtype=np.int64)
    y[node] = label[community]
    mean = rng.standard_normal((CLASSES, FEATURES), dtype=np.float32)
    mean *= SIGNAL / np.linalg.norm(mean, axis=1, keepdims=True)
    x = rng.standard_normal((n, FEATURES), dtype=np.float32)
    x += mean[y]
    one_way = torch.from_numpy(node[edges])
    return Data(
        x=torch.from_numpy(x),
        edge_index=torch.cat([one_way, one_way.flip(0)], dim=1),
        y=torch.from_numpy(y),
    )


def powerlaw_problem(size: float = 1.0, seed: int = 0) -> Problem:
    """The graph of :func:`powerlaw` with ``size`` times a million nodes, split 60/20/20."""
    nodes = round(_check.number("size", size, 0.0, 1.0) * NODES)
    data = powerlaw(nodes, seed)
    problem = problem_from_pyg(data, "powerlaw", num_classes=CLASSES, split=seed)
    notes = {
        "source": f"generated, {nodes} nodes, seed {seed}",
        "features": "a weak mean of the class and noise",
    }
    return replace(problem, notes={**problem.notes, **notes})


def cumulative_weights(
    n: int, rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Draw weights of nodes; return their sums ``[n + 1]``, in the community and among all."""
    weight = np.minimum((1 - rng.random(n)) ** (-1 / (EXPONENT - 1)), np.sqrt(n))
    near = np.concatenate([[0.0], np.cumsum(np.minimum(weight, LOCAL))])
    return near, np.concatenate([[0.0], np.cumsum(weight)])


def draw_pairs(
    near: NDArray[np.float64],
    far: NDArray[np.float64],
    size: int,
    inside: int,
    outside: int,
    rng: np.random.Generator,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Draw so many pairs of nodes of one community of this ``size``, and of any two nodes."""
    n = len(near) - 1
    u_near = _draw(near, 0.0, near[-1], inside, rng)
    u = np.concatenate([u_near, _draw(far, 0.0, far[-1], outside, rng)])
    first = u_near // size * size
    last = np.minimum(first + size, n)
    v_near = _draw(near, near[first], near[last], inside, rng)
    return u, np.concatenate([v_near, _draw(far, 0.0, far[-1], outside, rng)])


def _edges(
    near: NDArray[np.float64], far: NDArray[np.float64], size: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """``5 n`` different undirected edges, ``[2, 5 n]``, smaller end first.

    Nodes of a community of this ``size`` are neighbours by number.
    """
    n = len(near) - 1
    total = DEGREE * n // 2
    edges = np.empty(0, dtype=np.int64)
    while len(edges) < total:
        count = (total - len(edges)) * 21 // 20 + 16
        inside = round(INSIDE * count)
        u, v = draw_pairs(near, far, size, inside, count - inside, rng)
        key = np.minimum(u, v) * n + np.maximum(u, v)
        edges = np.unique(np.concatenate([edges, key[u != v]]))
    edges = np.delete(edges, rng.choice(len(edges), len(edges) - total, replace=False))
    return np.stack([edges // n, edges % n])


def _draw(
    cumulative: NDArray[np.float64],
    low: NDArray[np.float64] | float,
    high: NDArray[np.float64] | float,
    count: int,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Nodes drawn by weight among those between two values of the cumulative weight."""
    at = low + (high - low) * rng.random(count)
    found = np.searchsorted(cumulative, at, side="right") - 1
    return np.minimum(found, len(cumulative) - 2)
