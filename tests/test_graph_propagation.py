from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from eegnn import Adjacency
from eegnn.graph import Norm
from tests.graphs import NORMS, TRIANGLE_AND_TAIL, Pairs, both_ways, dense, features, graphs, quick


@quick
@given(graphs(), st.sampled_from(NORMS), st.integers(0, 3))
def test_propagation_is_the_dense_product(
    graph: tuple[int, Pairs], norm: Norm, channels: int
) -> None:
    n, pairs = graph
    x = features(n, channels)
    adj = Adjacency.from_edge_index(both_ways(pairs), n)
    out = adj.propagate(torch.from_numpy(x), norm)
    assert out.shape == (n, channels)
    np.testing.assert_allclose(out.numpy(), dense(n, pairs, norm) @ x, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("several", [0, 1, 5])
def test_several_at_once_are_as_one_by_one(several: int, norm: Norm) -> None:
    x = torch.from_numpy(np.stack([features(6, 4, seed) for seed in range(7)])[:several])
    adj = Adjacency.from_edge_index(both_ways(TRIANGLE_AND_TAIL), 6)
    out = adj.propagate(x, norm)
    assert out.shape == x.shape
    for one, given_one in zip(out, x, strict=True):
        torch.testing.assert_close(one, adj.propagate(given_one, norm))


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize(
    ("dtype", "rtol"), [(torch.float64, 1e-13), (torch.float32, 2e-6), (torch.bfloat16, 2e-2)]
)
def test_propagation_keeps_the_dtype(norm: Norm, dtype: torch.dtype, rtol: float) -> None:
    x = torch.from_numpy(features(6, 4)).to(dtype)
    adj = Adjacency.from_edge_index(both_ways(TRIANGLE_AND_TAIL), 6)
    out = adj.propagate(x, norm)
    assert out.dtype == dtype
    exact = dense(6, TRIANGLE_AND_TAIL, norm) @ x.double().numpy()
    np.testing.assert_allclose(out.double().numpy(), exact, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("n", [0, 1, 4])
def test_a_graph_without_edges_propagates_zeros(norm: Norm, n: int) -> None:
    adj = Adjacency.from_edge_index(torch.zeros(2, 0, dtype=torch.int64), n)
    assert (adj.num_nodes, adj.num_edges) == (n, 0)
    assert torch.equal(adj.propagate(torch.ones(n, 2), norm), torch.zeros(n, 2))


@pytest.mark.parametrize("norm", NORMS)
def test_isolated_nodes_receive_zero_and_not_nan(norm: Norm) -> None:
    adj = Adjacency.from_edge_index(both_ways([(0, 2)]), 4)
    out = adj.propagate(torch.ones(4, 1), norm)
    assert out.view(-1).tolist() == [1.0, 0.0, 1.0, 0.0]


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("pairs", [TRIANGLE_AND_TAIL, []])
def test_gradients_are_right_to_second_order(norm: Norm, pairs: Pairs) -> None:
    adj = Adjacency.from_edge_index(both_ways(pairs), 5)
    x = torch.from_numpy(features(5, 2)).requires_grad_()

    def curved(z: Tensor) -> Tensor:  # the second derivative of a linear map alone is zero
        return adj.propagate(z.sin(), norm)

    assert torch.autograd.gradcheck(curved, (x,))
    assert torch.autograd.gradgradcheck(curved, (x,))


def test_a_strided_gradient_is_propagated_back() -> None:
    adj = Adjacency.from_edge_index(both_ways(TRIANGLE_AND_TAIL), 4)
    x = torch.from_numpy(features(4, 2)).requires_grad_()
    adj.propagate(x, "mean").sum().backward()  # an expanded, stride-0 gradient
    assert x.grad is not None
    exact = dense(4, TRIANGLE_AND_TAIL, "mean").T @ np.ones((4, 2))
    np.testing.assert_allclose(x.grad.numpy(), exact, rtol=1e-13)


@quick
@given(graphs(), st.sampled_from(NORMS), st.sampled_from([15, 16, 33]))
def test_wide_features_in_float32_take_another_kernel_to_the_same_end(
    graph: tuple[int, Pairs], norm: Norm, channels: int
) -> None:
    n, pairs = graph
    exact = dense(n, pairs, norm)
    x = torch.from_numpy(features(n, channels)).float().requires_grad_()
    adj = Adjacency.from_edge_index(both_ways(pairs), n)
    out = adj.propagate(x, norm)
    np.testing.assert_allclose(out.detach().numpy(), exact @ x.detach().numpy(), atol=2e-5)
    upstream = torch.from_numpy(features(n, channels, seed=1)).float()
    (gradient,) = torch.autograd.grad(out, x, upstream)
    np.testing.assert_allclose(gradient.numpy(), exact.T @ upstream.numpy(), atol=2e-5)
    with torch.no_grad():
        assert torch.equal(adj.propagate(x, norm), out)


def test_an_unknown_norm_is_refused() -> None:
    adj = Adjacency.from_edge_index(both_ways([(0, 1)]))
    with pytest.raises(ValueError, match=r"norm must be one of 'sym', 'mean', 'sum', got 'max'"):
        adj.propagate(torch.ones(2, 1), "max")  # type: ignore[arg-type]


@pytest.mark.parametrize("norm", NORMS)
def test_the_compiler_takes_propagation_whole(norm: Norm) -> None:
    torch.compiler.reset()
    adj = Adjacency.from_edge_index(both_ways(TRIANGLE_AND_TAIL), 4)

    def step(x: Tensor) -> Tensor:
        return adj.propagate(x.sin(), norm).cos()

    compiled: Callable[[Tensor], Tensor] = torch.compile(step, fullgraph=True, backend="aot_eager")
    plain = torch.from_numpy(features(4)).requires_grad_()
    fast = plain.detach().clone().requires_grad_()
    expected, out = step(plain), compiled(fast)
    torch.testing.assert_close(out, expected)
    expected.sum().backward()
    out.sum().backward()
    assert plain.grad is not None
    torch.testing.assert_close(fast.grad, plain.grad)
