"""Graph Transfer: carry a one from a source to a target many hops away."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, get_args

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import to_undirected

from eegnn import _check
from eegnn.data.npz import problem_from_pyg
from eegnn.data.problem import Problem

TransferGraph = Literal["line", "ring", "crossed-ring"]

GRAPHS = {"train": 1000, "val": 100, "test": 100}


def transfer(kind: TransferGraph, distance: int, size: float = 1.0, seed: int = 0) -> Problem:
    """Generate the task: every node keeps its number, but source and target swap theirs.

    The feature of a node is drawn from U[0, 1), but the source has 1 and the target 0; the label is
    the feature with 0 at the source and 1 at the target. All graphs are the same but for the
    numbers. Three generators with different seeds make the 1000, 100 and 100 graphs of training,
    validation and test.

    Args:
        kind: ``"line"``: ``distance`` nodes with self-loops, from one end to the other (so
            ``distance − 1`` hops, as in the original); ``"ring"``: ``2 · distance`` nodes,
            from node 0 to the opposite one; ``"crossed-ring"``: a ring with chords between nodes
            on opposite sides whose distances to the source differ by one, so that the target
            comes no closer.
        distance: 3, 5, 10 and 50 in the literature; at least 3.
        size: share of the numbers of graphs, at least one in each part.
        seed: the same seed gives the same graphs.
    """
    _check.choice("kind", kind, get_args(TransferGraph))
    _check.integer("distance", distance, at_least=3, at_most=10_000)
    _check.number("size", size, 0.0, 1.0)
    _check.integer("seed", seed, at_least=0)
    n, target = (distance, distance - 1) if kind == "line" else (2 * distance, distance)
    edge_index = _edges(kind, n)
    counts = [max(1, round(size * count)) for count in GRAPHS.values()]
    graphs = []
    for part, count in enumerate(counts):
        generator = torch.Generator().manual_seed(len(GRAPHS) * seed + part)
        x = torch.rand(count, n, 1, generator=generator)
        x[:, 0], x[:, target] = 1.0, 0.0
        y = x.clone()
        y[:, 0], y[:, target] = 0.0, 1.0
        graphs += [Data(x=a, edge_index=edge_index, y=b) for a, b in zip(x, y, strict=True)]
    problem = problem_from_pyg(
        graphs,
        f"transfer-{kind}-{distance}",
        torch.arange(len(graphs)).split(counts),
        level="node",
        task="regression",
        metric="mse",
    )
    notes = {
        "source": f"generated, seed {seed}",
        "split": "graphs drawn with a seed of their own for each part",
        "features": "U[0, 1); 1 at the source, node 0, and 0 at the target",
    }
    return replace(problem, notes=notes)


def _edges(kind: TransferGraph, n: int) -> Tensor:
    """Both directions of every edge, and self-loops on a line, ``int64 [2, E]``."""
    node = torch.arange(n)
    if kind == "line":
        pairs = [torch.stack([node, node]), torch.stack([node[:-1], node[1:]])]
    else:
        pairs = [torch.stack([node, node.roll(-1)])]
    if kind == "crossed-ring":
        half = node[: n // 2]
        pairs += [torch.stack([half, n - 1 - half]), torch.stack([half[1:], n + 1 - half[1:]])]
    one_way = torch.cat(pairs, dim=1)
    return to_undirected(one_way[:, one_way[1] < n])
