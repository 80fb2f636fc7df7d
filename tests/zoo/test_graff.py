from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from eegnn.zoo.graff import GRAFF, GRAFFStep, OmegaStyle, WStyle
from tests.graphs import Matrix, Pairs, dense, features
from tests.zoo.examples import GRAPHS, M, adjacency, array, check_states, drawn, states

W_STYLES: list[WStyle] = ["diag_dom", "sum"]
OMEGA_STYLES: list[OmegaStyle] = ["diag", "zero"]


def weight_by_hand(step: GRAFFStep) -> Matrix:
    """W_s entry by entry."""
    stored = array(step.symmetric.get_parameter("value"))
    w = np.zeros((M, M))
    for i in range(M):
        for j in range(M):
            if step.w_style == "sum":
                w[i, j] = (stored[i, j] + stored[j, i]) / 2
            elif i != j:
                w[i, j] = stored[min(i, j), max(i, j)]
    if step.w_style == "diag_dom":
        q, r = stored[:, M], stored[:, M + 1]
        for i in range(M):
            w[i, i] = q[i] * sum(abs(w[i, j]) for j in range(M) if j != i) + r[i]
    return w


def by_hand(model: GRAFF, x: Matrix, n: int, pairs: Pairs) -> Matrix:
    """x + τ ReLU(Ā x W - x Ω + β x₀)."""
    step = model.steps[0]
    assert isinstance(step, GRAFFStep)
    a, w = dense(n, pairs, "sym"), weight_by_hand(step)
    omega = np.zeros((M, M)) if step.omega is None else np.diag(array(step.omega))
    source = np.zeros_like(x) if model.beta is None else model.beta.item() * x
    for _ in range(model.num_layers):
        x = x + model.step_size * np.maximum(a @ x @ w - x @ omega + source, 0)
    return x


@pytest.mark.parametrize("w_style", W_STYLES)
@pytest.mark.parametrize("omega_style", OMEGA_STYLES)
@pytest.mark.parametrize("source", [False, True])
@pytest.mark.parametrize("graph", GRAPHS[:2])
def test_states_follow_the_equation(
    graph: tuple[int, Pairs], source: bool, omega_style: OmegaStyle, w_style: WStyle
) -> None:
    n, pairs = graph
    model = drawn(
        GRAFF(3, M, 2, 3, w_style=w_style, omega_style=omega_style, source=source, step_size=0.3)
    )
    check_states(model, by_hand, n, pairs)


def energy(step: GRAFFStep, h: Tensor, a: Tensor, source: Tensor) -> Tensor:
    """Σ_i ⟨h_i, Ω h_i⟩ - Σ_ij a_ij ⟨h_i, W h_j⟩ - 2 ⟨H, S⟩."""
    omega = torch.zeros(M, dtype=h.dtype) if step.omega is None else step.omega
    own = (h.square() * omega).sum()
    pairs = torch.einsum("ij,ia,ab,jb->", a, h, step.weight, h)
    return own - pairs - 2 * (h * source).sum()


@pytest.mark.parametrize("w_style", W_STYLES)
@pytest.mark.parametrize("omega_style", OMEGA_STYLES)
def test_it_is_a_gradient_flow(w_style: WStyle, omega_style: OmegaStyle) -> None:
    n, pairs = GRAPHS[1]
    a, h, source = torch.from_numpy(dense(n, pairs, "sym")), states(n), states(n, seed=1)
    step = drawn(GRAFFStep(M, w_style, omega_style, "identity"))
    (slope,) = torch.autograd.grad(energy(step, h.requires_grad_(), a, source), h)
    found = step(h, adjacency(n, pairs), source=source)
    torch.testing.assert_close(found, -slope / 2, rtol=0, atol=1e-12)


@pytest.mark.parametrize("activation", ["identity", "relu", "tanh"])
@pytest.mark.parametrize("w_style", W_STYLES)
def test_energy_never_increases_with_small_steps(w_style: WStyle, activation: str) -> None:
    n, pairs = GRAPHS[1]
    adj, a, h = adjacency(n, pairs), torch.from_numpy(dense(n, pairs, "sym")), states(n)
    source = states(n, seed=1)
    step = drawn(GRAFFStep(M, w_style, "diag", activation))
    with torch.no_grad():
        energies = []
        for _ in range(40):
            energies.append(energy(step, h, a, source))
            h = h + 0.01 * step(h, adj, source=source)
    assert (torch.stack(energies).diff() <= 1e-12).all()
    assert energies[0] - energies[-1] > 0.1


def test_the_diagonal_starts_between_minus_one_and_one() -> None:
    omega = GRAFFStep(1000).omega
    assert omega is not None
    assert omega.min() < -0.95
    assert omega.max() > 0.95
    assert omega.abs().max() <= 1


def test_the_source_starts_at_nothing() -> None:
    n, pairs = GRAPHS[0]
    x, adj = torch.from_numpy(features(n)).float(), adjacency(n, pairs)
    with_source, without = GRAFF(3, M, 2, source=True), GRAFF(3, M, 2)
    with_source.load_state_dict(without.state_dict(), strict=False)
    assert torch.equal(with_source(x, adj), without(x, adj))
