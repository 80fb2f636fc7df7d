"""The linear map by oneDNN against the one by matrix products in double precision."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from eegnn import _linear
from eegnn._linear import linear

ROWS = 300


@pytest.fixture(autouse=True)
def always_much_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_linear, "MUCH_WORK", 0)


@pytest.fixture
def by_onednn(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """The shapes of the inputs that went by oneDNN."""
    if _linear._ONEDNN is None:
        pytest.skip("this build of PyTorch has no oneDNN")
    seen, kernel = [], _linear._kernel

    def watched(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        seen.append(tuple(x.shape))
        return kernel(x, weight, bias)

    monkeypatch.setattr(_linear, "_kernel", watched)
    return seen


def inputs(kind: str, width: int = 7, out: int = 5) -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(ROWS, 2 * width, generator=generator)
    weight = torch.randn(2 * out, 2 * width, generator=generator)
    bias = torch.randn(out, generator=generator)
    if kind == "parts of larger matrices":
        return [x[:, :width], weight[out:, width:], bias]
    x, weight = x[:, :width].contiguous(), weight[:out, :width].contiguous()
    if kind == "transposed":
        return [x.T.contiguous().T, weight.T.contiguous().T, bias]
    return [x, weight, bias]


KINDS = ["contiguous", "transposed", "parts of larger matrices"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("with_bias", [False, True])
def test_outputs_and_gradients(
    kind: str, with_bias: bool, by_onednn: list[tuple[int, ...]]
) -> None:
    given = [value.requires_grad_() for value in inputs(kind)[: 3 if with_bias else 2]]
    exact = [value.detach().double().requires_grad_() for value in given]
    x, weight, *bias = exact
    truth = x @ weight.T + (bias[0] if bias else 0)
    out = linear(*given)
    torch.testing.assert_close(out.double(), truth, atol=1e-5, rtol=1e-5)
    grad = torch.randn(out.shape, generator=torch.Generator().manual_seed(1))
    found = torch.autograd.grad(out, given, grad)
    wanted = torch.autograd.grad(truth, exact, grad.double())
    for own, right in zip(found, wanted, strict=True):
        torch.testing.assert_close(own.double(), right, atol=1e-4, rtol=1e-5)
    assert by_onednn == [(ROWS, 7), (ROWS, 5)]  # forward, and the gradient of x


def test_gradients_of_gradients(by_onednn: list[tuple[int, ...]]) -> None:
    x, weight, _ = (value.requires_grad_() for value in inputs("contiguous"))
    (slope,) = torch.autograd.grad(linear(x, weight).pow(3).sum(), x, create_graph=True)
    found = torch.autograd.grad(slope.sum(), weight)[0]
    x, weight = x.detach().double(), weight.detach().double().requires_grad_()
    # The gradient of Σ y³ by x is 3 y² W.
    wanted = torch.autograd.grad((3 * (x @ weight.T).square() @ weight).sum(), weight)[0]
    torch.testing.assert_close(found.double(), wanted, atol=1e-2, rtol=1e-5)


def test_other_precisions_take_the_usual_way(by_onednn: list[tuple[int, ...]]) -> None:
    x, weight, bias = inputs("contiguous")
    torch.testing.assert_close(
        linear(x.double(), weight.double()), x.double() @ weight.double().T, atol=0, rtol=0
    )
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert linear(x, weight, bias).dtype == torch.bfloat16
    assert not by_onednn


def test_few_rows_take_the_usual_way(
    by_onednn: list[tuple[int, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_linear, "MUCH_WORK", 10**9)
    x, weight, bias = inputs("contiguous")
    assert torch.equal(linear(x, weight, bias), torch.nn.functional.linear(x, weight, bias))
    assert not by_onednn
