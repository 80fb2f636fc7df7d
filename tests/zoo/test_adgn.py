from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor
from torch_geometric.nn import AntiSymmetricConv, GCNConv

from eegnn.zoo.adgn import ADGN, ADGNStep, Phi
from tests.graphs import Matrix, Pairs, dense
from tests.zoo.examples import GRAPHS, M, adjacency, array, check_states, drawn, jacobian, states

PHIS: list[Phi] = ["gcn", "sum"]


def by_hand(model: ADGN, x: Matrix, n: int, pairs: Pairs) -> Matrix:
    """x + ε tanh((W - Wᵀ - γI) x + Σ_j a_ij V x_j + b), with dense matrices."""
    step = model.steps[0]
    assert isinstance(step, ADGNStep)
    w, v, b = (array(p) for p in (step.own.weight, step.neighbours.weight, step.own.bias))
    a = dense(n, pairs, "sym" if step.phi == "gcn" else "sum")
    own = w - w.T - step.own.gamma * np.eye(M)
    for _ in range(model.num_layers):
        x = x + model.step_size * np.tanh(x @ own.T + a @ x @ v.T + b)
    return x


@pytest.mark.parametrize("phi", PHIS)
@pytest.mark.parametrize("graph", GRAPHS)
def test_states_follow_the_equation(graph: tuple[int, Pairs], phi: Phi) -> None:
    n, pairs = graph
    model = drawn(ADGN(3, M, 2, 3, phi=phi, step_size=0.3, gamma=0.2))
    check_states(model, by_hand, n, pairs)


@pytest.mark.parametrize("phi", PHIS)
@pytest.mark.parametrize("act", ["tanh", "relu"])
def test_it_is_what_pyg_computes(phi: Phi, act: str) -> None:
    n, pairs = GRAPHS[1]
    step, adj, h = drawn(ADGNStep(M, phi, activation=act)), adjacency(n, pairs), states(n)
    conv = GCNConv(M, M, bias=False, add_self_loops=False, normalize=phi == "gcn")
    theirs = AntiSymmetricConv(M, conv, num_iters=4, act=act).double()
    with torch.no_grad():
        theirs.W.copy_(step.own.weight)
        theirs.bias.copy_(step.own.bias)
        conv.lin.weight.copy_(step.neighbours.weight)
    ours = h
    for _ in range(4):
        ours = ours + theirs.epsilon * step(ours, adj)
    assert step.own.gamma == theirs.gamma == ADGN.defaults()["gamma"]
    assert theirs.epsilon == ADGN.defaults()["step_size"]
    torch.testing.assert_close(ours, theirs(h, adj.edge_index), rtol=0, atol=1e-12)


def own_jacobian(step: ADGNStep, h: Tensor, node: int) -> Tensor:
    adj = adjacency(*GRAPHS[1])

    def velocity(own: Tensor) -> Tensor:
        return step(torch.cat([h[:node], own.unsqueeze(0), h[node + 1 :]]), adj)[node]

    return jacobian(velocity, h[node].clone())


@pytest.mark.parametrize("phi", PHIS)
def test_own_jacobian_has_imaginary_eigenvalues_without_diffusion(phi: Phi) -> None:
    n = GRAPHS[1][0]
    step, damped = drawn(ADGNStep(M, phi, gamma=0.0)), drawn(ADGNStep(M, phi, gamma=0.1))
    h = states(n)
    for node in range(n):
        eigenvalues = torch.linalg.eigvals(own_jacobian(step, h, node))
        assert eigenvalues.real.abs().max() < 1e-12
        assert eigenvalues.imag.abs().max() > 1e-2
        assert torch.linalg.eigvals(own_jacobian(damped, h, node)).real.max() < -1e-4


@pytest.mark.parametrize(("phi", "bound"), [("gcn", 3**0.5), ("sum", 1.0)])
def test_weights_start_as_the_authors_draw_them(phi: Phi, bound: float) -> None:
    m = 100
    step = ADGNStep(m, phi)
    assert 0.95 < step.neighbours.weight.abs().max() * m**0.5 / bound <= 1
    assert 0.95 < step.own.weight.abs().max() * m**0.5 <= 1
    assert 0.9 < step.own.bias.abs().max() * m**0.5 <= 1
