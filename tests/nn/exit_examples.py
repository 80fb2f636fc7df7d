"""Graphs, features and small models that the tests of the exit loop share."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from eegnn import EEGNN
from eegnn.nn.heads import MLP, Confidence, MeanGNN, Temperature
from tests.nn.model_examples import lively
from tests.transcription import Graph

Config = dict[str, Any]

L, IN, HIDDEN, OUT = 6, 3, 5, 3
#: With the first of these seeds most units leave at either end; with the others the exits are
#: spread, for nodes and for graphs.
SEEDS = [1, 37, 43]


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


def make(seed: int, **config: Any) -> EEGNN:
    """A model whose units leave at different layers."""
    torch.manual_seed(seed)
    return lively(EEGNN(IN, HIDDEN, OUT, **{"num_layers": L, "nu0": 0.3, **config}).double(), 10.0)


def features(seed: int, rows: int, channels: int = IN) -> Tensor:
    generator = torch.Generator().manual_seed(500 + seed)
    return torch.randn(rows, channels, generator=generator, dtype=torch.float64)


def heads(seed: int) -> tuple[Confidence, Temperature]:
    torch.manual_seed(seed)
    f_c = MeanGNN(HIDDEN, 4, 2)
    last = f_c.lins[-1]
    assert isinstance(last, nn.Linear)
    with torch.no_grad():
        last.weight.mul_(2)
        last.bias.copy_(torch.tensor([0.15, -0.15]))
    confidence = Confidence(f_c, continue_bias=None).double()
    return confidence, Temperature(MLP(HIDDEN, 4, 1, bias=False)).double()
