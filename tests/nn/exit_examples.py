"""Graphs, features and small models that the tests of the exit loop share."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from eegnn import EEGNN
from eegnn.nn.heads import MLP, Confidence, MeanGNN, Temperature
from tests.transcription import Graph

Config = dict[str, Any]

L, IN, HIDDEN, OUT = 6, 3, 5, 3
#: Random weights often let everyone leave at the same end; with the last two of these seeds the
#: exits are spread, for nodes and graphs and both objectives.
SEEDS = [1, 4, 77]


def random_edges(rng: random.Random, nodes: list[int], p: float) -> list[tuple[int, int]]:
    return [(u, v) for u in nodes for v in nodes if u < v and rng.random() < p]


def connected_or_not(seed: int) -> Graph:
    return Graph(random_edges(random.Random(seed), list(range(11)), 0.3), 11)


def with_isolated_nodes(seed: int) -> Graph:
    return Graph(random_edges(random.Random(seed), list(range(2, 9)), 0.4), 11)


def disconnected(seed: int) -> Graph:
    rng = random.Random(seed)
    edges = random_edges(rng, [0, 1, 2, 3, 4], 0.6) + random_edges(rng, [5, 6, 7, 8], 0.6)
    return Graph(edges, 11)


def without_edges(seed: int) -> Graph:
    return Graph([], 5)


def batch_of_graphs(seed: int) -> Graph:
    """Graphs of 1 to 5 nodes, one of them without edges, and a number without nodes."""
    rng = random.Random(seed)
    edges: list[tuple[int, int]] = []
    graph_of: list[int] = []
    for g, size in enumerate([4, 1, 5, 0, 3, 2, 5, 4]):
        nodes = list(range(len(graph_of), len(graph_of) + size))
        edges += random_edges(rng, nodes, 0.0 if g == 4 else 0.7)
        graph_of += [g] * size
    return Graph(edges, len(graph_of), graph_of)


GRAPHS: dict[str, Callable[[int], Graph]] = {
    "random": connected_or_not,
    "isolated nodes": with_isolated_nodes,
    "disconnected": disconnected,
    "no edges": without_edges,
}

#: Arguments of EEGNN. The start of f_c is such that units leave everywhere between 0 and L.
SAMPLED: Config = {"objective": "sampled", "continue_bias": 1.0, "head_scale": 10.0}
EXPECTED: Config = {"objective": "expected", "continue_bias": 2.0, "head_scale": 20.0}


def make(seed: int, **config: Any) -> EEGNN:
    torch.manual_seed(seed)
    return EEGNN(IN, HIDDEN, OUT, **{"num_layers": L, "nu0": 0.3, **config}).double()


def confidence_of(model: EEGNN) -> Confidence:
    confidence = model.loop.confidence
    assert isinstance(confidence, Confidence)
    return confidence


def last_bias_gradient(model: EEGNN) -> Tensor:
    """The gradient that reaches the preference for *continue* and *exit*, ``[2]``."""
    gradient = dict(confidence_of(model).named_parameters())["head.lins.0.bias"].grad
    assert gradient is not None
    return gradient


def features(seed: int, rows: int, channels: int = IN) -> Tensor:
    generator = torch.Generator().manual_seed(500 + seed)
    return torch.randn(rows, channels, generator=generator, dtype=torch.float64)


def heads(seed: int) -> tuple[Confidence, Temperature]:
    torch.manual_seed(seed)
    confidence = Confidence(MeanGNN(HIDDEN, 4, 2), continue_bias=0.3, scale=2.0).double()
    return confidence, Temperature(MLP(HIDDEN, 4, 1, bias=False)).double()
