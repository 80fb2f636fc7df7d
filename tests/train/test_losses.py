from __future__ import annotations

import math

import pytest
import torch

from eegnn import Adjacency
from eegnn.train.batches import MiniBatch
from eegnn.train.losses import choose_loss

OUT = torch.tensor([[1.0, -1.0], [0.5, 2.0]])
ADJ = Adjacency.from_edge_index(torch.tensor([[0, 1], [1, 0]]), 2)


def value_of(name: str, task: str, y: torch.Tensor, out: torch.Tensor = OUT) -> float:
    return choose_loss(name, task)(out, MiniBatch(None, None, ADJ, y)).item()


def test_classification_is_trained_with_the_cross_entropy() -> None:
    found = value_of("auto", "classification", torch.tensor([0, 1]))
    expected = (math.log(1 + math.exp(-2.0)) + math.log(1 + math.exp(-1.5))) / 2
    assert found == pytest.approx(expected)


def test_labels_are_trained_with_a_cross_entropy_each() -> None:
    found = value_of("auto", "multilabel", torch.tensor([[1.0, 0.0], [0.0, 1.0]]))
    margins = (1.0, 1.0, -0.5, 2.0)
    assert found == pytest.approx(sum(math.log(1 + math.exp(-m)) for m in margins) / 4)


def test_regression_is_trained_with_the_squared_error() -> None:
    y = torch.tensor([[0.0, 0.0], [0.5, 0.0]])
    assert value_of("auto", "regression", y) == pytest.approx((1 + 1 + 0 + 4) / 4)


@pytest.mark.parametrize(
    ("name", "expected"), [("mse", 6 / 4), ("l1", 4 / 4), ("log10_mse", math.log10(6 / 4))]
)
def test_regression_takes_other_losses_by_name(name: str, expected: float) -> None:
    y = torch.tensor([[0.0, 0.0], [0.5, 0.0]])
    assert value_of(name, "regression", y) == pytest.approx(expected)


def test_a_perfect_fit_has_a_finite_logarithm() -> None:
    assert value_of("log10_mse", "regression", OUT) == pytest.approx(-12)


@pytest.mark.parametrize("task", ["classification", "multilabel"])
@pytest.mark.parametrize("name", ["mse", "l1", "log10_mse"])
def test_a_loss_for_regression_is_refused_elsewhere(name: str, task: str) -> None:
    with pytest.raises(ValueError, match=f"loss='{name}' is for regression.*{task}"):
        choose_loss(name, task)


def test_only_units_that_count_are_in_the_loss() -> None:
    units = MiniBatch(None, None, ADJ, torch.zeros(2, 2), index=torch.tensor([0]))
    assert choose_loss("l1", "regression")(10 * OUT, units).item() == pytest.approx(10)
