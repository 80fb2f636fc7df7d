from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from eegnn.nn.activations import ACTIVATIONS, relu_tanh


def dense_range() -> Tensor:
    wide = torch.linspace(-12, 12, 400_001)
    near_zero = torch.logspace(-30, 0, 100_001)
    return torch.cat([wide, near_zero, -near_zero])


def test_float32_agrees_with_tanh() -> None:
    z = dense_range()
    exact = torch.from_numpy(np.maximum(np.tanh(z.double().numpy()), 0)).float()
    assert float((relu_tanh(z) - exact).abs().max()) < 2e-7


def test_float64_is_exact() -> None:
    z = dense_range().double()
    assert torch.equal(relu_tanh(z), z.tanh().relu())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_keeps_its_dtype(dtype: torch.dtype) -> None:
    z = torch.linspace(-4, 4, 1001).to(dtype)
    assert torch.equal(relu_tanh(z), z.tanh().relu())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_extremes_are_finite(dtype: torch.dtype) -> None:
    z = torch.tensor([-1e30, -1e3, -0.0, 0.0, 1e3, 1e30], dtype=dtype, requires_grad=True)
    y = relu_tanh(z)
    y.sum().backward()
    assert y.tolist() == [0.0, 0.0, 0.0, 0.0, 1.0, 1.0]
    assert z.grad is not None
    assert z.grad.tolist() == [0.0] * 6


def test_the_gradient_is_zero_for_negative_inputs_only() -> None:
    z = torch.tensor([-3.0, -0.5, -1e-3, 1e-3, 0.5, 3.0], requires_grad=True)
    relu_tanh(z).sum().backward()
    assert z.grad is not None
    assert z.grad[:3].tolist() == [0.0, 0.0, 0.0]
    expected = 1 - np.tanh(z.detach()[3:].double().numpy()) ** 2
    np.testing.assert_allclose(z.grad[3:].numpy(), expected, rtol=0, atol=3e-7)


def test_gradients_are_right_to_second_order() -> None:
    z = torch.tensor([-2.0, -0.7, -0.1, 0.1, 0.6, 1.5], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(relu_tanh, (z,))
    assert torch.autograd.gradgradcheck(relu_tanh, (z,))


def test_the_input_is_left_alone() -> None:
    z = torch.linspace(-1, 1, 11)
    before = z.clone()
    relu_tanh(z)
    assert torch.equal(z, before)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("relu_tanh", lambda z: np.maximum(np.tanh(z), 0)),
        ("relu", lambda z: np.maximum(z, 0)),
        ("tanh", np.tanh),
        ("identity", lambda z: z),
    ],
)
def test_names_mean_what_they_say(name: str, expected: np.ufunc) -> None:
    z = np.linspace(-3, 3, 61)
    out = ACTIVATIONS[name](torch.from_numpy(z)).numpy()
    np.testing.assert_allclose(out, expected(z), rtol=1e-14, atol=1e-15)


def test_there_are_the_activations_of_the_ablation() -> None:
    assert set(ACTIVATIONS) == {"relu_tanh", "relu", "tanh", "identity"}
