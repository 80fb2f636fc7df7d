from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from eegnn import Adjacency, SASConv
from eegnn.analysis.energy import energy, energy_rate
from tests.graphs import Pairs, both_ways, dense, features, graphs, quick

WIDTH = 3


def conv(seed: int, **options: object) -> SASConv:
    torch.manual_seed(seed)
    return SASConv(WIDTH, **options).double().requires_grad_(False)  # type: ignore[arg-type]


def literal(h: Tensor, n: int, pairs: Pairs, weight: Tensor) -> float:
    """The double sum of Eq. 3."""
    a, state, w = dense(n, pairs, "sym"), h.numpy(), weight.detach().numpy()
    return -sum(a[i, j] * float(state[i] @ w @ state[j]) for i in range(n) for j in range(n))


@quick
@given(graphs(), st.integers(0, 5))
def test_energy_is_the_sum_of_the_paper(graph: tuple[int, Pairs], seed: int) -> None:
    n, pairs = graph
    adj, weight = Adjacency.from_edge_index(both_ways(pairs), n), conv(seed).weight
    layers = torch.from_numpy(np.stack([features(n, WIDTH, k) for k in range(2)]))
    found = energy(layers, adj, weight)
    assert found.shape == (2,)
    for h, value in zip(layers, found, strict=True):
        assert float(value) == pytest.approx(literal(h, n, pairs, weight), abs=1e-12)
        assert float(energy(h, adj, weight)) == pytest.approx(float(value), abs=1e-12)


@quick
@given(graphs(), st.integers(0, 5))
def test_the_flow_never_increases_it(graph: tuple[int, Pairs], seed: int) -> None:
    n, pairs = graph
    adj, step = Adjacency.from_edge_index(both_ways(pairs), n), conv(seed)
    assert float(energy_rate(step, torch.from_numpy(features(n, WIDTH, seed)), adj)) <= 0


@quick
@given(graphs(), st.integers(0, 5))
def test_the_flow_never_increases_it_with_edge_features(
    graph: tuple[int, Pairs], seed: int
) -> None:
    n, pairs = graph
    edge_index = both_ways(pairs)
    edge_attr = torch.from_numpy(features(edge_index.size(1), 2, seed + 1))
    step = conv(seed, edge_dim=2)
    h = torch.from_numpy(features(n, WIDTH, seed))
    assert float(energy_rate(step, h, Adjacency.from_edge_index(edge_index, n), edge_attr)) <= 0


def test_the_rate_is_the_slope_along_the_flow() -> None:
    pairs: Pairs = [(0, 1), (1, 2), (2, 3), (0, 2)]
    adj, step = Adjacency.from_edge_index(both_ways(pairs), 4), conv(1)
    h, eps = torch.from_numpy(np.abs(features(4, WIDTH))), 1e-6
    with torch.no_grad():
        flow = step(h, adj)
    up, down = (literal(h + t * flow, 4, pairs, step.weight) for t in (eps, -eps))
    rate = float(energy_rate(step, h, adj))
    assert rate < -0.01
    assert rate == pytest.approx((up - down) / (2 * eps), rel=1e-6)


def test_other_activations_may_increase_it() -> None:
    """Where Z is positive and below σ₂, a σ₁ with a negative side works against it."""
    adj = Adjacency.from_edge_index(both_ways([(0, 1), (1, 2)]), 3)
    step = conv(0, activation="tanh")
    with torch.no_grad():
        step.antisymmetric.value.mul_(10)
    h = torch.from_numpy(np.stack([features(3, WIDTH, seed) for seed in range(20)]))
    assert max(float(energy_rate(step, one, adj)) for one in h) > 0.1
