"""Dropout against its definition."""

from __future__ import annotations

import pytest
import torch

from eegnn.nn.dropout import Dropout


@pytest.mark.parametrize("shape", [(1,), (3,), (7, 5), (401, 33), (2, 3, 4)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_entries_are_dropped_or_scaled(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    out = Dropout(0.25)(torch.ones(shape, dtype=dtype))
    assert out.shape == shape
    assert out.dtype == dtype
    kept = out[out != 0]
    torch.testing.assert_close(kept, torch.full_like(kept, 4 / 3))


@pytest.mark.parametrize("p", [0.001, 0.1, 0.2, 0.5, 0.9])
def test_the_share_and_the_mean_are_right(p: float) -> None:
    torch.manual_seed(1)
    n = 400_000
    out = Dropout(p)(torch.ones(n))
    spread = (p * (1 - p) / n) ** 0.5
    assert abs(float((out == 0).float().mean()) - p) < 5 * spread + 2**-16
    assert abs(float(out.double().mean()) - 1) < 5 * spread / (1 - p)


def test_entries_are_independent_of_their_neighbours_and_of_the_last_call() -> None:
    torch.manual_seed(2)
    drop = Dropout(0.5)
    first, second = (drop(torch.ones(200_000)) > 0 for _ in range(2))
    for a, b in [(first[k:], first[: -k or None]) for k in (1, 2, 3, 4, 8)] + [(first, second)]:
        together = float((a & b).float().mean())
        assert abs(together - 0.25) < 0.006  # over five standard deviations


def test_the_gradient_is_that_of_the_mask() -> None:
    torch.manual_seed(3)
    x = torch.rand(50, 7, requires_grad=True) + 1
    x.retain_grad()
    out = Dropout(0.4)(x)
    out.sum().backward()
    assert x.grad is not None
    torch.testing.assert_close(x.grad, out.detach() / x.detach())


def test_the_seed_decides() -> None:
    x = torch.ones(100)
    draws = []
    for seed in (4, 4, 5):
        torch.manual_seed(seed)
        draws.append(Dropout(0.5)(x))
    assert torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])


def test_nothing_happens_where_nothing_should() -> None:
    x = torch.rand(5, 2)
    assert Dropout(0.5).eval()(x) is x
    assert Dropout(0.0)(x) is x
    assert not Dropout(1.0)(x).any()
    assert torch.equal(Dropout(1e-9)(x), x)
    assert Dropout(0.5)(torch.zeros(0, 3)).shape == (0, 3)


@pytest.mark.parametrize("p", [-0.1, 1.1, float("nan")])
def test_what_is_no_probability_is_refused(p: float) -> None:
    with pytest.raises(ValueError, match="dropout must be in"):
        Dropout(p)
