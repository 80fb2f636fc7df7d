from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from eegnn.zoo.adgn import Phi
from eegnn.zoo.phdgn import PHDGN, Damping, Forcing, HamiltonianGradient, Readout
from tests.graphs import Matrix, Pairs, dense
from tests.zoo.examples import GRAPHS, M, adjacency, array, check_states, drawn, jacobian, states

DAMPINGS: list[Damping | None] = [None, "param", "param+", "mlp", "dgn"]
FORCINGS: list[Forcing | None] = [None, "mlp", "dgn"]


def gradient_by_hand(part: HamiltonianGradient, x: Matrix, a: Matrix) -> Matrix:
    """Wᵀ tanh(z_i) + Σ_j a_ji Vᵀ tanh(z_j) with z_i = W x_i + Σ_j a_ij V x_j + b."""
    w, v, b = (array(p) for p in (part.own.weight, part.neighbours.weight, part.own.bias))
    n = len(x)
    s = np.tanh(
        [w @ x[i] + sum((a[i, j] * v @ x[j] for j in range(n)), np.zeros(M)) + b for i in range(n)]
    )
    return np.array(
        [w.T @ s[i] + sum((a[j, i] * v.T @ s[j] for j in range(n)), np.zeros(M)) for i in range(n)]
    )


def damping_by_hand(model: PHDGN, q: Matrix, a: Matrix) -> Matrix:
    term = model.damping_term
    if term is None:
        return np.zeros_like(q)
    if term.form in ("param", "param+"):
        vector = array(term.vector)
        return np.tile(vector if term.form == "param" else np.maximum(vector, 0), (len(q), 1))
    weights = [array(w) for w in term.parameters()]
    if term.form == "dgn":
        return np.maximum(a @ q @ weights[0].T, 0)
    w1, b1, w2, b2, w3, b3, w4 = weights
    for w, b in ((w1, b1), (w2, b2), (w3, b3), (w4, np.zeros(M))):
        q = np.maximum(q @ w.T + b, 0)
    return q


def forcing_by_hand(model: PHDGN, q: Matrix, a: Matrix, time: float) -> Matrix:
    term = model.forcing_term
    if term is None:
        return np.zeros_like(q)
    state = np.concatenate([q, np.full((len(q), 1), time)], axis=1)
    weights = [array(w) for w in term.parameters()]
    if term.form == "dgn":
        return np.tanh(a @ state @ weights[0].T)
    w1, b1, w2, b2, w3, b3, w4 = weights
    for w, b in ((w1, b1), (w2, b2), (w3, b3)):
        state = np.sin(state @ w.T + b)
    return state @ w4.T


def by_hand(model: PHDGN, x: Matrix, n: int, pairs: Pairs) -> Matrix:
    a = dense(n, pairs)
    weighted = dense(n, pairs, "sym") if model.gradient_p.phi == "gcn" else a
    p = q = x
    for layer in range(model.num_layers):
        speed = gradient_by_hand(model.gradient_p, p, weighted)
        q = q + model.step_size * speed
        p = (
            p
            - model.step_size * gradient_by_hand(model.gradient_q, q, weighted)
            - model.step_size * damping_by_hand(model, q, a) * speed
            + model.step_size * forcing_by_hand(model, q, a, layer * model.step_size)
        )
    return {"p": p, "q": q, "pq": np.concatenate([p, q], axis=1)}[model.readout]


@pytest.mark.parametrize("damping", DAMPINGS)
@pytest.mark.parametrize("forcing", FORCINGS)
def test_states_follow_the_equations(damping: Damping | None, forcing: Forcing | None) -> None:
    n, pairs = GRAPHS[0]
    model = PHDGN(3, M, 2, 3, damping=damping, forcing=forcing, step_size=0.3)
    check_states(drawn(model), by_hand, n, pairs)


@pytest.mark.parametrize("phi", ["sum", "gcn"])
@pytest.mark.parametrize("readout", ["p", "q"])
@pytest.mark.parametrize("graph", GRAPHS)
def test_one_half_of_the_state_may_be_read(
    graph: tuple[int, Pairs], readout: Readout, phi: Phi
) -> None:
    n, pairs = graph
    model = PHDGN(3, M, 2, 2, phi=phi, readout=readout)
    check_states(drawn(model), by_hand, n, pairs)


def energy(model: PHDGN, p: Tensor, q: Tensor, a: Tensor) -> Tensor:
    """Σ log cosh(W x + Φ(x) + b), over momenta and positions."""
    total = torch.zeros((), dtype=p.dtype)
    for part, x in ((model.gradient_p, p), (model.gradient_q, q)):
        z = part.own(x) + a @ x @ part.neighbours.weight.T
        total = total + z.cosh().log().sum()
    return total


@pytest.mark.parametrize("phi", ["sum", "gcn"])
def test_forces_are_the_gradient_of_the_energy(phi: Phi) -> None:
    n, pairs = GRAPHS[1]
    model, adj = drawn(PHDGN(3, M, 2, phi=phi)), adjacency(n, pairs)
    a = torch.from_numpy(dense(n, pairs, "sym" if phi == "gcn" else "sum"))
    p, q = states(n).requires_grad_(), states(n, seed=1).requires_grad_()
    by_p, by_q = torch.autograd.grad(energy(model, p, q, a), (p, q))
    torch.testing.assert_close(model.gradient_p(p, adj), by_p, rtol=0, atol=1e-12)
    torch.testing.assert_close(model.gradient_q(q, adj), by_q, rtol=0, atol=1e-12)


def test_a_conservative_step_is_symplectic() -> None:
    model, size = drawn(PHDGN(3, M, 2, 1, step_size=0.4)), 3 * M
    adj = adjacency(3, [(0, 1), (1, 2)])

    def flow(state: Tensor) -> Tensor:
        p, q = state.view(2, 3, M)
        return torch.cat([part.flatten() for part in model.advance(p, q, adj, 0.0)])

    step = jacobian(flow, torch.cat([states(3), states(3, seed=1)]).flatten())
    zero, eye = torch.zeros(size, size), torch.eye(size)
    form = torch.cat([torch.cat([zero, eye], 1), torch.cat([-eye, zero], 1)]).double()
    torch.testing.assert_close(step.T @ form @ step, form, rtol=0, atol=1e-12)


def energies(model: PHDGN, steps: int) -> Tensor:
    """The energy before each step."""
    n, pairs = GRAPHS[1]
    adj, a, every = adjacency(n, pairs), torch.from_numpy(dense(n, pairs)), []
    p = q = states(n)
    with torch.no_grad():
        for _ in range(steps):
            every.append(energy(model, p, q, a))
            p, q = model.advance(p, q, adj, 0.0)
    return torch.stack(every)


def test_the_conservative_model_keeps_its_energy() -> None:
    drift = []
    for step_size, steps in ((0.02, 50), (0.01, 100)):
        found = energies(drawn(PHDGN(3, M, 2, step_size=step_size)), steps)
        drift.append(float((found - found[0]).abs().max() / found[0]))
    assert drift[0] < 0.03
    assert 0.4 < drift[1] / drift[0] < 0.6  # of first order in the step


def test_damping_takes_energy_away() -> None:
    damped = drawn(PHDGN(3, M, 2, step_size=0.02, damping="param"))
    assert damped.damping_term is not None
    with torch.no_grad():
        damped.damping_term.vector.fill_(1.0)
    found = energies(damped, 50)
    assert (found.diff() < 0).all()
    assert found[-1] < 0.8 * found[0]


def test_the_decoder_of_both_halves_has_the_options_of_the_model() -> None:
    model = PHDGN(3, M, 2, decoder_layers=2, dropout=0.3)
    shapes = [tuple(p.shape) for p in model.decoder.parameters()]
    assert shapes == [(2 * M, 2 * M), (2 * M,), (2, 2 * M), (2,)]
    assert model.decoder.dropout.p == 0.3
