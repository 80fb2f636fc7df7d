from __future__ import annotations

import math

import pytest
import torch

from eegnn.train.losses import choose_loss, log10_mse

OUT = torch.tensor([[1.0, -1.0], [0.5, 2.0]])


def test_classification_is_trained_with_the_cross_entropy() -> None:
    found = choose_loss("auto", "classification")(OUT, torch.tensor([0, 1]))
    expected = (math.log(1 + math.exp(-2.0)) + math.log(1 + math.exp(-1.5))) / 2
    assert found.item() == pytest.approx(expected)


def test_labels_are_trained_with_a_cross_entropy_each() -> None:
    found = choose_loss("auto", "multilabel")(OUT, torch.tensor([[1.0, 0.0], [0.0, 1.0]]))
    margins = (1.0, 1.0, -0.5, 2.0)
    assert found.item() == pytest.approx(sum(math.log(1 + math.exp(-m)) for m in margins) / 4)


def test_regression_is_trained_with_the_squared_error() -> None:
    y = torch.tensor([[0.0, 0.0], [0.5, 0.0]])
    assert choose_loss("auto", "regression")(OUT, y).item() == pytest.approx((1 + 1 + 0 + 4) / 4)


@pytest.mark.parametrize(
    ("name", "expected"), [("mse", 6 / 4), ("l1", 4 / 4), ("log10_mse", math.log10(6 / 4))]
)
def test_regression_takes_other_losses_by_name(name: str, expected: float) -> None:
    y = torch.tensor([[0.0, 0.0], [0.5, 0.0]])
    assert choose_loss(name, "regression")(OUT, y).item() == pytest.approx(expected)


def test_a_perfect_fit_has_a_finite_logarithm() -> None:
    assert log10_mse(OUT, OUT).item() == pytest.approx(-12)


@pytest.mark.parametrize("task", ["classification", "multilabel"])
@pytest.mark.parametrize("name", ["mse", "l1", "log10_mse"])
def test_a_loss_for_regression_is_refused_elsewhere(name: str, task: str) -> None:
    with pytest.raises(ValueError, match=f"loss='{name}' is for regression.*{task}"):
        choose_loss(name, task)
