from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from torch import Tensor

from eegnn import Adjacency
from eegnn.analysis import dirichlet
from eegnn.analysis.dirichlet import dirichlet_energy
from tests.graphs import Pairs, both_ways, features, graphs, quick

STAR: Pairs = [(0, 1), (0, 2), (0, 3)]


def adjacency(n: int, pairs: Pairs) -> Adjacency:
    return Adjacency.from_edge_index(both_ways(pairs), n)


def literal(h: np.ndarray[tuple[int, int], np.dtype[np.float64]], pairs: Pairs) -> float:
    """The sum of the paper, over both directions of every edge."""
    degree = [sum(i in pair for pair in pairs) for i in range(len(h))]
    total = 0.0
    for a, b in pairs:
        for i, j in ((a, b), (b, a)):
            gap = h[j] / np.sqrt(degree[j] + 1) - h[i] / np.sqrt(degree[i] + 1)
            total += float(np.sum(gap**2))
    return total


@quick
@given(graphs())
def test_energy_is_the_sum_of_the_paper(graph: tuple[int, Pairs]) -> None:
    n, pairs = graph
    h = features(n)
    found = dirichlet_energy(torch.from_numpy(h), adjacency(n, pairs))
    assert float(found) == pytest.approx(literal(h, pairs), rel=1e-12)


@quick
@given(graphs())
def test_energy_is_zero_for_states_proportional_to_the_root_of_the_degree_plus_one(
    graph: tuple[int, Pairs],
) -> None:
    adj = adjacency(*graph)
    h = (adj.degree + 1).double().sqrt().unsqueeze(-1) * torch.tensor([1.0, -3.0])
    assert float(dirichlet_energy(h, adj)) == pytest.approx(0, abs=1e-28)


def test_small_energies_survive() -> None:
    adj = adjacency(4, STAR)
    flat = (adj.degree + 1).double().sqrt().unsqueeze(-1)
    h = flat + torch.tensor([1e-9, 0.0, 0.0, 0.0]).unsqueeze(-1)
    assert float(dirichlet_energy(h, adj)) == pytest.approx(2 * 3 * (1e-9 / 2) ** 2, rel=1e-6)


@pytest.mark.parametrize("chunk", [1, 7, 2**23])
def test_layers_and_chunks_change_nothing(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dirichlet, "_CHUNK", chunk)
    adj = adjacency(4, STAR)
    layers: Tensor = torch.from_numpy(np.stack([features(4, seed=k) for k in range(3)]))
    found = dirichlet_energy(layers, adj)
    assert found.shape == (3,)
    for layer in range(3):
        assert float(found[layer]) == pytest.approx(literal(layers[layer].numpy(), STAR))
