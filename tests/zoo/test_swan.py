from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from eegnn.nn.weights import Antisymmetric
from eegnn.zoo.adgn import ADGNStep
from eegnn.zoo.swan import SWAN, Phi, SWANStep, antisymmetric_walk
from tests.graphs import Matrix, Pairs, dense
from tests.zoo.examples import GRAPHS, M, adjacency, array, check_states, drawn, jacobian, states

PHIS: list[Phi] = ["antisymmetric", "gcn", "sum"]


def walk_by_hand(n: int, pairs: Pairs) -> Matrix:
    """1/d_i - 1/d_j on the edge between i and j."""
    a = dense(n, pairs)
    walk = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            if a[i, j]:
                walk[i, j] = 1 / a[i].sum() - 1 / a[j].sum()
    return walk


def weights_by_hand(step: SWANStep) -> tuple[Matrix, Matrix]:
    """V and Z as they act on a column vector, entry by entry from what is stored."""
    v, z = np.zeros((M, M)), np.zeros((M, M))
    if isinstance(step.neighbours, Antisymmetric):
        stored = iter(array(step.neighbours.value))
        for i in range(M):
            for j in range(i + 1, M):
                v[j, i] = next(stored)  # for products from the right, so the transpose
                v[i, j] = -v[j, i]
    else:
        v = array(step.neighbours.weight)
    stored = iter(array(step.differences.value))
    for i in range(M):
        for j in range(i, M):
            z[i, j] = z[j, i] = next(stored)
    return v, z


def by_hand(model: SWAN, x: Matrix, n: int, pairs: Pairs) -> Matrix:
    """x + ε tanh((W - Wᵀ - γI) x + Σ_j a_ij V x_j + β Σ_j (1/d_i - 1/d_j) Z x_j + b)."""
    step = model.steps[0]
    assert isinstance(step, SWANStep)
    w, b = array(step.own.weight), array(step.own.bias)
    v, z = weights_by_hand(step)
    a, walk = dense(n, pairs, "sum" if step.phi == "sum" else "sym"), walk_by_hand(n, pairs)
    for _ in range(model.num_layers):
        own = x @ (w - w.T - step.own.gamma * np.eye(M)).T
        neighbours = a @ x @ v.T + step.beta * walk @ x @ z.T
        x = x + model.step_size * np.tanh(own + neighbours + b)
    return x


@pytest.mark.parametrize("phi", PHIS)
@pytest.mark.parametrize("graph", GRAPHS)
def test_states_follow_the_equation(graph: tuple[int, Pairs], phi: Phi) -> None:
    n, pairs = graph
    model = drawn(SWAN(3, M, 2, 3, phi=phi, step_size=0.3, gamma=0.2, beta=-0.7))
    check_states(model, by_hand, n, pairs)


@pytest.mark.parametrize("graph", GRAPHS)
def test_the_walk_is_antisymmetric(graph: tuple[int, Pairs]) -> None:
    n, pairs = graph
    walk = antisymmetric_walk(torch.eye(n, dtype=torch.float64), adjacency(n, pairs))
    np.testing.assert_allclose(array(walk), walk_by_hand(n, pairs), atol=1e-15)
    torch.testing.assert_close(walk, -walk.T, rtol=0, atol=1e-15)
    h = states(n)
    assert (h * antisymmetric_walk(h, adjacency(n, pairs))).sum().abs() < 1e-12


def whole_jacobian(step: SWANStep) -> Tensor:
    n, pairs = GRAPHS[1]
    adj = adjacency(n, pairs)
    return jacobian(lambda flat: step(flat.view(n, M), adj).flatten(), states(n).flatten())


def test_all_states_together_move_antisymmetrically() -> None:
    linear = drawn(SWANStep(M, gamma=0.0, beta=0.8, activation="identity"))
    matrix = whole_jacobian(linear)
    torch.testing.assert_close(matrix, -matrix.T, rtol=0, atol=1e-14)
    assert matrix.abs().max() > 0.5
    bounded = whole_jacobian(drawn(SWANStep(M, "gcn", gamma=0.0, beta=0.8, activation="identity")))
    assert not torch.allclose(bounded, -bounded.T, atol=1e-3)


def test_the_whole_graph_has_imaginary_eigenvalues() -> None:
    eigenvalues = torch.linalg.eigvals(whole_jacobian(drawn(SWANStep(M, gamma=0.0, beta=0.8))))
    assert eigenvalues.real.abs().max() < 1e-10
    assert eigenvalues.imag.abs().max() > 0.1
    bounded = whole_jacobian(drawn(SWANStep(M, "gcn", gamma=0.0, beta=0.8)))
    assert torch.linalg.eigvals(bounded).real.abs().max() > 1e-2


def test_without_the_walk_it_is_adgn() -> None:
    n, pairs = GRAPHS[1]
    swan, adgn = drawn(SWANStep(M, "gcn", beta=0.0)), ADGNStep(M, "gcn").double()
    adgn.load_state_dict(swan.state_dict(), strict=False)
    assert torch.equal(swan(states(n), adjacency(n, pairs)), adgn(states(n), adjacency(n, pairs)))


@pytest.mark.parametrize("phi", PHIS)
def test_weights_start_as_the_authors_draw_them(phi: Phi) -> None:
    m = 100
    bound = {"gcn": 3**0.5}.get(phi, 1.0) / m**0.5
    step = SWANStep(m, phi)
    neighbours, differences = step.neighbours, step.differences.value
    weight = neighbours.value if isinstance(neighbours, Antisymmetric) else neighbours.weight
    assert 0.95 < weight.abs().max() / bound <= 1
    assert 0.95 < differences.abs().max() * m**0.5 <= 1


def test_a_single_channel_works() -> None:
    n, pairs = GRAPHS[0]
    assert SWANStep(1)(torch.ones(n, 1), adjacency(n, pairs)).shape == (n, 1)
