"""Hints about exits: when they come, what they say, and that each comes once."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from eegnn import EEGNN, SASGNN
from eegnn.nn.exits import Exits
from eegnn.train.hints import ExitHints
from tests.train.problems import small_config

L, UNITS = 4, 100


def exits(at_once: int = 0, full: int = 0) -> Exits:
    """Exits of 100 units: so many at layer 1, so many at the last layer, the others at 2."""
    layer = torch.full((UNITS,), 2)
    layer[:at_once] = 1
    layer[UNITS - full :] = L
    return Exits(layer, torch.zeros(UNITS), torch.zeros(0, UNITS), torch.tensor(0.0), L)


def hints(**settings: Any) -> ExitHints:
    return ExitHints(small_config(**settings), EEGNN(3, 8, 2, num_layers=L))


def given(told: ExitHints, epochs: list[Exits]) -> dict[int, str]:
    """Hints by epoch."""
    found = {epoch: told.after(epoch, seen) for epoch, seen in enumerate(epochs, start=1)}
    return {epoch: hint for epoch, hint in found.items() if hint is not None}


def test_usual_exits_need_no_hint() -> None:
    assert given(hints(), [exits(at_once=94, full=6)] * 100) == {}


def test_everyone_at_layer_1_is_told_at_once_and_once() -> None:
    found = given(hints(), [exits(), exits(at_once=100), exits(), *[exits(at_once=100)] * 30])
    assert list(found) == [2]
    assert found[2].startswith("everyone left at layer 1 at epoch 2")


def test_nearly_everyone_at_layer_1_is_told_after_ten_epochs_in_a_row() -> None:
    nine = [exits(at_once=95)] * 9
    found = given(hints(), [*nine, exits(at_once=94), *nine, exits(at_once=99), *nine, *nine])
    assert list(found) == [20]
    assert "95% or more left at layer 1 in the 10 epochs up to 20" in found[20]


@pytest.mark.parametrize(
    ("cost_weight", "advice"),
    [
        (0.0, "a larger options.continue_bias"),
        (0.5, "a larger options.continue_bias or a smaller cost_weight (now 0.5)"),
    ],
)
def test_the_hint_names_what_this_run_can_change(cost_weight: float, advice: str) -> None:
    (hint,) = given(hints(cost_weight=cost_weight), [exits(at_once=100)]).values()
    assert hint.endswith(f"train again with {advice}")


@pytest.mark.parametrize(("epochs", "due"), [(30, 20), (100, 20), (101, 21), (1000, 200)])
def test_nobody_leaving_is_told_after_a_fifth_of_the_epochs(epochs: int, due: int) -> None:
    found = given(hints(epochs=epochs), [exits(full=UNITS)] * epochs)
    assert list(found) == [due]
    assert f"nobody left before layer {L} in {due} epochs" in found[due]
    assert "a small cost_weight such as 0.01" in found[due]


def test_with_a_price_the_hint_asks_for_a_higher_one() -> None:
    (hint,) = given(hints(cost_weight=0.02), [exits(full=UNITS)] * 20).values()
    assert "a larger cost_weight (now 0.02)" in hint


def test_one_that_leaves_is_enough() -> None:
    assert given(hints(epochs=100), [exits(full=UNITS - 1)] * 100) == {}


def test_a_budget_of_one_step_is_no_collapse() -> None:
    told = ExitHints(small_config(num_layers=1), EEGNN(3, 8, 2, num_layers=1))
    everyone = Exits.all_at(1, 1, torch.zeros(UNITS, 8))
    assert given(told, [everyone] * 100) == {}


def test_a_model_without_exits_gets_no_hints() -> None:
    told = ExitHints(small_config(model="sasgnn"), SASGNN(3, 8, 2, num_layers=L))
    assert given(told, [exits(full=UNITS)] * 100) == {}
