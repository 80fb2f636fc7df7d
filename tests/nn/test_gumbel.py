from __future__ import annotations

import math

import pytest
import torch
from scipy import stats  # type: ignore[import-untyped]
from torch import Tensor

from eegnn.nn.gumbel import continue_score, logistic_noise


def test_the_noise_is_logistic() -> None:
    torch.manual_seed(0)
    noise = logistic_noise(torch.empty(20_000, dtype=torch.float64)).numpy()
    assert stats.kstest(noise, "logistic").pvalue > 0.01


def test_the_noise_is_a_difference_of_two_gumbels() -> None:
    torch.manual_seed(0)
    noise = logistic_noise(torch.empty(20_000, dtype=torch.float64)).numpy()
    gumbel = torch.distributions.Gumbel(torch.tensor(0.0, dtype=torch.float64), 1.0)
    difference = (gumbel.sample((20_000,)) - gumbel.sample((20_000,))).numpy()
    assert stats.ks_2samp(noise, difference).pvalue > 0.01


def test_the_noise_is_reproducible_and_independent_of_values() -> None:
    torch.manual_seed(3)
    first = logistic_noise(torch.zeros(5))
    torch.manual_seed(3)
    assert torch.equal(logistic_noise(torch.full((5,), 7.0)), first)
    assert not torch.equal(logistic_noise(torch.zeros(5)), first)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_the_noise_is_finite_also_for_a_uniform_of_zero(
    dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert logistic_noise(torch.zeros(100_000, dtype=dtype)).isfinite().all()
    monkeypatch.setattr(torch, "rand_like", torch.zeros_like)
    assert logistic_noise(torch.ones(3, dtype=dtype)).isfinite().all()


def literal(logits: Tensor, noise: Tensor, nu: Tensor) -> Tensor:
    """softmax((C + g) / ν)[0], by the definition."""
    e = ((logits + noise) / nu.unsqueeze(-1)).exp()
    return e[:, 0] / (e[:, 0] + e[:, 1])


def test_the_score_is_the_first_entry_of_the_softmax() -> None:
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(50, 2, dtype=torch.float64, generator=generator)
    noise = -(-torch.rand(50, 2, dtype=torch.float64, generator=generator).log()).log()
    nu = torch.rand(50, dtype=torch.float64, generator=generator) + 0.2
    total = logits + noise
    score = continue_score(total[:, 0] - total[:, 1], 1 / nu)
    torch.testing.assert_close(score, literal(logits, noise, nu), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize("inverse", [0.0, 1e-30, 0.1, 1.0, 1e4])
def test_confident_heads_give_finite_values_and_gradients(inverse: float, hard: bool) -> None:
    delta = torch.tensor([-1e4, -60.0, 0.0, 60.0, 1e4], requires_grad=True)
    nu = torch.full((5,), inverse, requires_grad=True)
    score = continue_score(delta, nu, hard)
    score.sum().backward()
    assert score.isfinite().all()
    assert ((score >= 0) & (score <= 1)).all()
    for tensor in (delta, nu):
        assert tensor.grad is not None
        assert tensor.grad.isfinite().all()


def test_an_inverse_temperature_of_zero_is_indifference() -> None:
    score = continue_score(torch.tensor([-5.0, 0.0, 1e4]), torch.zeros(3))
    assert score.tolist() == [0.5, 0.5, 0.5]


def test_hard_scores_are_the_argmax_with_the_gradient_of_the_soft() -> None:
    values = [-3.0, -0.2, 0.0, 0.4, 5.0]
    delta = torch.tensor(values, dtype=torch.float64, requires_grad=True)
    inverse = torch.full((5,), 0.7, dtype=torch.float64, requires_grad=True)
    hard = continue_score(delta, inverse, hard=True)
    assert hard.tolist() == [0.0, 0.0, 1.0, 1.0, 1.0]
    weight = torch.arange(1.0, 6.0, dtype=torch.float64)
    got = torch.autograd.grad((weight * hard).sum(), (delta, inverse))
    soft = continue_score(delta, inverse)
    expected = torch.autograd.grad((weight * soft).sum(), (delta, inverse))
    assert torch.equal(got[0], expected[0])
    assert torch.equal(got[1], expected[1])


def test_the_soft_score_has_the_right_gradient() -> None:
    delta = torch.tensor([-2.0, 0.3, 1.0], dtype=torch.float64, requires_grad=True)
    inverse = torch.tensor([0.5, 0.0, 2.0], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(continue_score, (delta, inverse))
    assert torch.autograd.gradgradcheck(continue_score, (delta, inverse))


def test_noise_and_score_together_continue_with_the_probability_of_the_logits() -> None:
    torch.manual_seed(0)
    delta = torch.full((40_000,), 0.8, dtype=torch.float64)
    share = (delta + logistic_noise(delta) >= 0).double().mean().item()
    expected = 1 / (1 + math.exp(-0.8))
    deviation = math.sqrt(expected * (1 - expected) / 40_000)
    assert abs(share - expected) < 4 * deviation
