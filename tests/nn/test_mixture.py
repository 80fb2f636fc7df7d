from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from eegnn.nn.mixture import MIXTURES, exit_log_probabilities

Array = npt.NDArray[np.float64]


def weights(score: Array) -> Array:
    """w_l by the definition: go on through every earlier layer, then leave."""
    layers, units = score.shape
    p = 1 / (1 + np.exp(-score))
    w = np.zeros((layers + 1, units))
    for u in range(units):
        here = 1.0
        for layer in range(layers):
            w[layer, u] = here * (1 - p[layer, u])
            here *= p[layer, u]
        w[layers, u] = here
    return w


def draw(layers: int = 4, units: int = 3, outputs: int = 2) -> tuple[Array, Array]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(layers, units)), rng.normal(size=(layers + 1, units, outputs))


def mix(task: str, score: Array, output: Array) -> Array:
    log_weight = exit_log_probabilities(torch.from_numpy(score))
    out: Array = MIXTURES[task].mean(log_weight, torch.from_numpy(output)).numpy()
    return out


@pytest.mark.parametrize("layers", [1, 4, 20])
def test_weights_follow_the_definition(layers: int) -> None:
    score, _ = draw(layers)
    got = exit_log_probabilities(torch.from_numpy(score)).exp().numpy()
    np.testing.assert_allclose(got, weights(score), rtol=1e-12)


@settings(deadline=None, max_examples=30)
@given(
    hnp.arrays(
        np.float64, st.tuples(st.integers(1, 6), st.integers(0, 3)), elements=st.floats(-1e4, 1e4)
    )
)
def test_weights_sum_to_one_for_any_score(score: Array) -> None:
    log_weight = exit_log_probabilities(torch.from_numpy(score))
    assert log_weight.isfinite().all()
    assert (log_weight <= 0).all()
    np.testing.assert_allclose(log_weight.exp().sum(0).numpy(), 1.0, rtol=1e-12)


def test_classes_mix_in_probability() -> None:
    score, output = draw(outputs=3)
    softmax = np.exp(output) / np.exp(output).sum(-1, keepdims=True)
    expected = np.einsum("lu,luc->uc", weights(score), softmax)
    got = np.exp(mix("classification", score, output))
    np.testing.assert_allclose(got, expected, rtol=1e-12)
    np.testing.assert_allclose(got.sum(-1), 1.0, rtol=1e-12)


def test_labels_mix_in_probability() -> None:
    score, output = draw(outputs=3)
    expected = np.einsum("lu,luc->uc", weights(score), 1 / (1 + np.exp(-output)))
    got = 1 / (1 + np.exp(-mix("multilabel", score, output)))
    np.testing.assert_allclose(got, expected, rtol=1e-12)


def test_regression_is_the_mean() -> None:
    score, output = draw()
    expected = np.einsum("lu,luc->uc", weights(score), output)
    np.testing.assert_allclose(mix("regression", score, output), expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("task", list(MIXTURES))
@pytest.mark.parametrize(("certain", "layer"), [(-1e4, 0), (1e4, 4)])
def test_a_certain_exit_alone_counts(task: str, certain: float, layer: int) -> None:
    score, output = draw()
    chosen = output[layer]
    if task == "classification":
        chosen = chosen - np.log(np.exp(chosen).sum(-1, keepdims=True))
    got = mix(task, np.full_like(score, certain), output)
    np.testing.assert_allclose(got, chosen, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("task", list(MIXTURES))
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("size", [60.0, 1e4])
def test_extreme_logits_give_finite_values_and_gradients(
    task: str, dtype: torch.dtype, size: float
) -> None:
    signs = torch.tensor([[1.0, -1.0, 1.0], [-1.0, -1.0, 1.0]], dtype=dtype)
    score = (size * signs).requires_grad_()
    output = torch.stack([size * signs, -size * signs, size * signs]).mT.contiguous()
    output = output.detach().requires_grad_()
    out = MIXTURES[task].mean(exit_log_probabilities(score), output)
    out.sum().backward()
    assert out.shape == (3, 2)
    assert out.isfinite().all()
    for tensor in (score, output):
        assert tensor.grad is not None
        assert tensor.grad.isfinite().all()


@pytest.mark.parametrize("task", list(MIXTURES))
def test_gradients_are_right(task: str) -> None:
    score, output = (torch.from_numpy(a).requires_grad_() for a in draw(3, 2, 2))

    def mixture(s: torch.Tensor, o: torch.Tensor) -> torch.Tensor:
        return MIXTURES[task].mean(exit_log_probabilities(s), o)

    assert torch.autograd.gradcheck(mixture, (score, output))


@pytest.mark.parametrize(
    ("task", "shares", "doubt"),
    [
        ("classification", [0.25, 0.25, 0.25, 0.25], 1.0),
        ("classification", [1.0, 0.0, 0.0], 0.0),
        ("classification", [0.7, 0.3], 0.6),
        ("multilabel", [0.9, 0.5, 0.1, 0.5], 1.0),  # yes, yes, no, no
        ("multilabel", [1.0, 0.9, 0.0, 0.1], 0.2),
    ],
)
def test_doubt(task: str, shares: list[float], doubt: float) -> None:
    tell = MIXTURES[task].doubt
    assert tell is not None
    assert float(tell(torch.tensor(shares).unsqueeze(-1))) == pytest.approx(doubt, abs=1e-6)


def test_nothing_tells_of_doubt_in_a_value() -> None:
    assert MIXTURES["regression"].doubt is None
