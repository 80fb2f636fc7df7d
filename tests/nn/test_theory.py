"""The theorems of the paper, checked on the library's own right-hand side."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from eegnn import Adjacency, SASConv
from eegnn.nn.sas_conv import EdgeTerm

SEEDS = range(5)
N, M = 8, 16


def random_adjacency(seed: int) -> tuple[Adjacency, Tensor]:
    """A random graph of degree about 4, and its Ā as a dense matrix."""
    generator = torch.Generator().manual_seed(1000 + seed)
    a = (torch.rand(N, N, generator=generator, dtype=torch.float64) < 0.55).double().triu(1)
    a = a + a.T
    degree = a.sum(1)
    dense = a / (degree.unsqueeze(0) * degree.unsqueeze(1)).clamp(min=1).sqrt()
    return Adjacency.from_edge_index(a.nonzero().T.contiguous(), N), dense


def random_states(seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(2000 + seed)
    return torch.randn(N, M, generator=generator, dtype=torch.float64)


def make_conv(
    seed: int,
    activation: str = "relu_tanh",
    edge_term: EdgeTerm = "none",
    omega_scale: float = 1.0,
) -> SASConv:
    torch.manual_seed(seed)
    edge_dim = None if edge_term == "none" else 3
    conv = SASConv(M, edge_dim, edge_term, activation=activation).double()
    with torch.no_grad():
        conv.antisymmetric.value.mul_(omega_scale)
    return conv


def edge_features(adj: Adjacency, seed: int) -> Tensor:
    """A feature for each column of ``edge_index``, the same in both directions."""
    generator = torch.Generator().manual_seed(3000 + seed)
    table = torch.randn(N, N, 3, generator=generator, dtype=torch.float64)
    row, col = adj.edge_index
    return (table + table.transpose(0, 1))[row, col]


def own_jacobian(conv: SASConv, adj: Adjacency, h: Tensor, i: int, self_loop: float) -> Tensor:
    """d(dh_i/dt)/dh_i, with a term Ā_ii h_i W_s added to the library's argument of σ₁."""
    bare = SASConv(M, activation="identity").double()
    bare.load_state_dict(conv.state_dict())

    def velocity(own: Tensor) -> Tensor:
        state = torch.cat([h[:i], own.unsqueeze(0), h[i + 1 :]])
        if self_loop == 0:
            return conv(state, adj)[i]
        return (bare(state, adj)[i] + self_loop * own @ conv.weight.detach()).tanh().relu()

    jacobian = torch.autograd.functional.jacobian(velocity, h[i].clone())
    assert isinstance(jacobian, Tensor)
    return jacobian


@pytest.mark.parametrize("seed", SEEDS)
def test_own_jacobian_of_a_node_has_imaginary_eigenvalues(seed: int) -> None:
    conv, (adj, _), h = make_conv(seed), random_adjacency(seed), random_states(seed)
    eigenvalues = torch.stack(
        [torch.linalg.eigvals(own_jacobian(conv, adj, h, i, 0.0)) for i in range(N)]
    )
    assert eigenvalues.real.abs().max() < 1e-9
    assert eigenvalues.imag.abs().max() > 0.05  # and they are not all zero


@pytest.mark.parametrize("seed", SEEDS)
def test_a_self_loop_breaks_theorem_1(seed: int) -> None:
    conv, (adj, _), h = make_conv(seed), random_adjacency(seed), random_states(seed)
    eigenvalues = torch.stack(
        [torch.linalg.eigvals(own_jacobian(conv, adj, h, i, 0.25)) for i in range(N)]
    )
    assert eigenvalues.real.abs().max() > 1e-3


def test_self_loops_of_the_input_do_not_reach_the_dynamics() -> None:
    conv, (adj, _), h = make_conv(0), random_adjacency(0), random_states(0)
    loops = torch.arange(N).repeat(2, 1)
    with_loops = Adjacency.from_edge_index(torch.cat([adj.edge_index, loops], dim=1), N)
    assert torch.equal(conv(h, with_loops), conv(h, adj))


@pytest.mark.parametrize("seed", SEEDS)
def test_own_jacobian_stays_imaginary_with_edge_features(seed: int) -> None:
    conv, (adj, _) = make_conv(seed, edge_term="relu"), random_adjacency(seed)
    h, features = random_states(seed), edge_features(adj, seed)
    for i in range(N):

        def velocity(own: Tensor, i: int = i) -> Tensor:
            return conv(torch.cat([h[:i], own.unsqueeze(0), h[i + 1 :]]), adj, features)[i]

        jacobian = torch.autograd.functional.jacobian(velocity, h[i].clone())
        assert isinstance(jacobian, Tensor)
        assert torch.linalg.eigvals(jacobian).real.abs().max() < 1e-9


@pytest.mark.parametrize("seed", SEEDS)
def test_own_jacobian_is_the_matrix_of_the_proof(seed: int) -> None:
    conv, (adj, dense), h = make_conv(seed), random_adjacency(seed), random_states(seed)
    omega, weight = conv.omega.detach(), conv.weight.detach()
    z = -(h @ omega).relu() + dense @ h @ weight
    for i in range(N):
        outer = (1 - z[i].tanh() ** 2) * (z[i] > 0)
        inner = (h[i] @ omega > 0).double()
        expected = -torch.diag(outer * inner) @ omega.T
        torch.testing.assert_close(own_jacobian(conv, adj, h, i, 0.0), expected, rtol=0, atol=1e-12)


def test_whole_graph_jacobian_may_have_positive_real_parts() -> None:
    """The theorem is about one node among fixed neighbours; the graph as a whole can expand."""
    largest = []
    for seed in SEEDS:
        conv, (adj, _), h = make_conv(seed), random_adjacency(seed), random_states(seed)

        def velocity(flat: Tensor, conv: SASConv = conv, adj: Adjacency = adj) -> Tensor:
            return conv(flat.view(N, M), adj).flatten()

        jacobian = torch.autograd.functional.jacobian(velocity, h.flatten())
        assert isinstance(jacobian, Tensor)
        largest.append(torch.linalg.eigvals(jacobian).real.max().item())
    assert max(largest) > 0.01


def energy(h: Tensor, dense: Tensor, weight: Tensor) -> Tensor:
    """Eq. 3: minus the sum over i, j of Ā_ij ⟨h_i, W h_j⟩."""
    return -torch.einsum("ij,ia,ab,jb->", dense, h, weight, h)


def energy_rates(
    conv: SASConv, adj: Adjacency, dense: Tensor, h: Tensor, features: Tensor | None, tau: float
) -> list[Tensor]:
    """∇E ⊙ dH/dt of every entry, at each of 30 Euler steps of the flow."""
    rates, weight = [], conv.weight.detach()
    for _ in range(30):
        h = h.detach().requires_grad_()
        (gradient,) = torch.autograd.grad(energy(h, dense, weight), h)
        with torch.no_grad():
            velocity = conv(h, adj, features)
            rates.append(gradient * velocity)
            h = h + tau * velocity
    return rates


@pytest.mark.parametrize(("omega_scale", "state_scale"), [(1.0, 1.0), (10.0, 0.1)])
@pytest.mark.parametrize("tau", [0.1, 1.0])
@pytest.mark.parametrize("edge_term", ["none", "relu"])
@pytest.mark.parametrize("seed", SEEDS)
def test_energy_never_increases_along_the_flow(
    seed: int, edge_term: EdgeTerm, tau: float, omega_scale: float, state_scale: float
) -> None:
    conv = make_conv(seed, edge_term=edge_term, omega_scale=omega_scale)
    adj, dense = random_adjacency(seed)
    features = None if edge_term == "none" else edge_features(adj, seed)
    rates = energy_rates(conv, adj, dense, state_scale * random_states(seed), features, tau)
    assert all(rate.sum() <= 1e-12 for rate in rates)
    # The proof asks more than the theorem: that no entry contributes an increase.
    assert all(rate.max() <= 1e-12 for rate in rates)
    assert min(rate.sum() for rate in rates) < -1e-3


def test_energy_check_finds_the_violations_of_tanh() -> None:
    total, entry = [], []
    for seed in SEEDS:
        conv, (adj, dense) = make_conv(seed, "tanh", omega_scale=10.0), random_adjacency(seed)
        rates = energy_rates(conv, adj, dense, 0.1 * random_states(seed), None, 0.1)
        total.append(max(rate.sum().item() for rate in rates))
        entry.append(max(rate.max().item() for rate in rates))
    assert max(total) > 1e-3
    assert min(entry) > 1e-3


def test_energy_check_finds_the_violations_of_a_linear_edge_term() -> None:
    for seed in SEEDS:
        conv, (adj, dense) = make_conv(seed, edge_term="linear"), random_adjacency(seed)
        features = edge_features(adj, seed)
        rates = energy_rates(conv, adj, dense, random_states(seed), features, 0.1)
        assert max(rate.max() for rate in rates) > 1e-3


def largest_decrease(activation: str, seed: int) -> float:
    conv, (adj, _), h = make_conv(seed, activation), random_adjacency(seed), random_states(seed)
    worst = 0.0
    with torch.no_grad():
        for _ in range(50):
            after = h + 0.5 * conv(h, adj)
            worst = max(worst, (h - after).max().item())
            h = after
    return worst


@pytest.mark.parametrize("seed", SEEDS)
def test_states_never_decrease(seed: int) -> None:
    assert largest_decrease("relu_tanh", seed) == 0.0
    assert largest_decrease("tanh", seed) > 0.1
