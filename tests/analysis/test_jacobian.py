from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from eegnn import Adjacency, SASConv
from eegnn.analysis.jacobian import LARGEST, graph_jacobian, node_jacobian, spectrum
from tests.graphs import TRIANGLE_AND_TAIL, Matrix, both_ways, dense

N, WIDTH = 4, 8
EDGES = both_ways(TRIANGLE_AND_TAIL)
ADJ = Adjacency.from_edge_index(EDGES, N)


def conv(seed: int = 0, **options: object) -> SASConv:
    torch.manual_seed(seed)
    return SASConv(WIDTH, **options).double()  # type: ignore[arg-type]


def states(seed: int = 0) -> Tensor:
    """Not negative, as those of a model are: then σ₁ has a slope in some places."""
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(N, WIDTH, generator=generator, dtype=torch.float64)


def literal(step: SASConv, h: Tensor) -> Matrix:
    """The derivative of each number of ΔH by each of H, from the equation."""
    omega, weight = step.omega.detach().numpy(), step.weight.detach().numpy()
    a, state = dense(N, TRIANGLE_AND_TAIL, "sym"), h.numpy()
    inner = state @ omega
    z = -np.maximum(inner, 0) + a @ state @ weight
    outer_slope = np.where(z > 0, 1 - np.tanh(z) ** 2, 0)
    jacobian = np.zeros((N, WIDTH, N, WIDTH))
    for i in range(N):
        for c in range(WIDTH):
            for j in range(N):
                for k in range(WIDTH):
                    own = -omega[k, c] if i == j and inner[i, c] > 0 else 0.0
                    jacobian[i, c, j, k] = outer_slope[i, c] * (own + a[i, j] * weight[k, c])
    return jacobian


@pytest.mark.parametrize("seed", range(3))
def test_jacobians_are_those_of_the_equation(seed: int) -> None:
    step, h = conv(seed), states(seed)
    truth = literal(step, h)
    whole = graph_jacobian(step, h, ADJ)
    np.testing.assert_allclose(whole, truth.reshape(N * WIDTH, N * WIDTH), atol=1e-12)
    for node in range(N):
        np.testing.assert_allclose(
            node_jacobian(step, h, ADJ, node), truth[node, :, node], atol=1e-12
        )


def test_a_node_by_itself_has_imaginary_eigenvalues() -> None:
    values = torch.stack(
        [
            spectrum(node_jacobian(conv(seed), states(seed), ADJ, node))
            for seed in range(5)
            for node in range(N)
        ]
    )
    assert float(values.real.abs().max()) < 1e-12
    assert float(values.imag.abs().max()) > 0.05


def test_a_graph_has_not() -> None:
    found = spectrum(graph_jacobian(conv(), states(), ADJ))
    assert float(found.real.max()) > 0.05
    assert float(found.real.min()) < -0.05


def test_the_spectrum_is_sorted() -> None:
    matrix = torch.tensor([[0.0, 2.0, 0.0], [-2.0, 0.0, 0.0], [0.0, 0.0, 3.0]])
    found = spectrum(matrix)
    assert found.dtype == torch.complex128
    np.testing.assert_allclose(found.real, [3, 0, 0], atol=1e-12)
    np.testing.assert_allclose(np.sort(found.imag), [-2, 0, 2], atol=1e-12)


def test_any_step_will_do_and_nothing_remains() -> None:
    h = states().requires_grad_()
    found = node_jacobian(lambda h, adj: h**2, h, ADJ, 1)
    torch.testing.assert_close(found, torch.diag(2 * h[1]).detach())
    assert not found.requires_grad
    assert h.grad is None


@pytest.mark.parametrize("node", [-1, N])
def test_a_node_that_is_not_there_is_refused(node: int) -> None:
    with pytest.raises(ValueError, match=r"node must be in \[0, 4\)"):
        node_jacobian(conv(), states(), ADJ, node)


def test_a_graph_too_large_is_refused() -> None:
    with pytest.raises(ValueError, match=f"at most {LARGEST} numbers"):
        graph_jacobian(conv(), torch.zeros(LARGEST, 2), ADJ)
