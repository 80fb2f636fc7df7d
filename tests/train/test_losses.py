from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch

from eegnn import Adjacency, Exits
from eegnn.train.batches import Units
from eegnn.train.losses import choose_loss

OUT = torch.tensor([[1.0, -1.0], [0.5, 2.0]])
ADJ = Adjacency.from_edge_index(torch.tensor([[0, 1], [1, 0]]), 2)


def value_of(name: str, task: str, y: torch.Tensor, out: torch.Tensor = OUT) -> float:
    units = Units(None, None, ADJ, y)
    return choose_loss(name, task)(out, Exits.all_at(3, 3, out), units).item()


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


@pytest.mark.parametrize(
    ("name", "expected"),
    [("mse", 0.25 * 4 + 0.75 * 1), ("l1", 0.25 * 2 + 0.75 * 1), ("log10_mse", math.log10(1.75))],
)
def test_the_average_over_exits_weighs_the_loss_of_each(name: str, expected: float) -> None:
    outputs = torch.tensor([[[2.0], [9.0]], [[1.0], [9.0]]])  # the second unit does not count
    exits = Exits(
        torch.zeros(2, dtype=torch.int64), torch.zeros(2), torch.zeros(0, 2), torch.zeros(()), 1,
        outputs=outputs, log_weight=torch.tensor([[0.25, 0.5], [0.75, 0.5]]).log(),
    )  # fmt: skip
    units = Units(None, None, ADJ, torch.zeros(2, 1), index=torch.tensor([0]))
    found = choose_loss(name, "regression", average=True)(outputs.mean(dim=0), exits, units)
    assert found.item() == pytest.approx(expected)


@pytest.mark.parametrize(
    ("name", "loss_of"), [("mse", lambda d: d**2), ("log10_mse", lambda d: math.log10(d**2))]
)
@pytest.mark.parametrize("average", [True, False])
def test_the_last_exit_counts_once_more(name: str, loss_of: Any, average: bool) -> None:
    outputs = torch.tensor([[[2.0]], [[0.5]]])  # two exits of one unit whose label is 0
    out = 0.25 * outputs[0] + 0.75 * outputs[1]
    exits = replace(
        Exits.all_at(1, 1, outputs[0]),
        outputs=outputs,
        log_weight=torch.tensor([[0.25], [0.75]]).log(),
    )
    units = Units(None, None, ADJ, torch.zeros(1, 1))
    alone = choose_loss(name, "regression", average)(out, exits, units).item()
    found = choose_loss(name, "regression", average, full_depth=0.5)(out, exits, units).item()
    assert found == pytest.approx(alone + 0.5 * loss_of(0.5))


def test_a_model_of_fixed_depth_has_one_exit_only() -> None:
    units = Units(None, None, ADJ, torch.zeros_like(OUT))
    exits = Exits.all_at(3, 3, OUT)
    losses = [choose_loss("mse", "regression", full_depth=w)(OUT, exits, units) for w in (0, 2)]
    assert losses[0] == losses[1]
