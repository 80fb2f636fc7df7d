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
    """Exits of 100 units: so many at layer 0, so many at the last layer, the others at 2."""
    layer = torch.full((UNITS,), 2)
    layer[:at_once] = 0
    layer[UNITS - full :] = L
    return Exits(layer, torch.zeros(UNITS), torch.zeros(0, UNITS), torch.tensor(0.0), L)


def hints(objective: Any = "expected", **settings: Any) -> ExitHints:
    model = EEGNN(3, 8, 2, num_layers=L, objective=objective)
    return ExitHints(small_config(**settings), model)


def given(told: ExitHints, epochs: list[Exits]) -> dict[int, str]:
    """Hints by epoch."""
    found = {epoch: told.after(epoch, seen) for epoch, seen in enumerate(epochs, start=1)}
    return {epoch: hint for epoch, hint in found.items() if hint is not None}


def test_usual_exits_need_no_hint() -> None:
    assert given(hints(), [exits(at_once=94, full=6)] * 100) == {}


def test_everyone_at_layer_0_is_told_at_once_and_once() -> None:
    found = given(hints(), [exits(), exits(at_once=100), exits(), *[exits(at_once=100)] * 30])
    assert list(found) == [2]
    assert found[2].startswith("everyone left at layer 0 at epoch 2")


def test_nearly_everyone_at_layer_0_is_told_after_ten_epochs_in_a_row() -> None:
    nine = [exits(at_once=95)] * 9
    found = given(hints(), [*nine, exits(at_once=94), *nine, exits(at_once=99), *nine, *nine])
    assert list(found) == [20]
    assert "95% or more left at layer 0 in the 10 epochs up to 20" in found[20]


@pytest.mark.parametrize(
    ("objective", "cost_weight", "said", "unsaid"),
    [
        ("sampled", 0.0, ["options.objective='expected'", "continue_bias"], ["cost_weight"]),
        ("expected", 0.0, ["continue_bias"], ["objective", "cost_weight"]),
        ("averaged", 0.0, ["continue_bias"], ["objective", "cost_weight"]),
        ("expected", 0.5, ["continue_bias", "a smaller cost_weight (now 0.5)"], ["objective"]),
    ],
)
def test_the_hint_names_what_this_run_can_change(
    objective: str, cost_weight: float, said: list[str], unsaid: list[str]
) -> None:
    (hint,) = given(hints(objective, cost_weight=cost_weight), [exits(at_once=100)]).values()
    assert all(words in hint for words in said)
    assert not any(words in hint for words in unsaid)


@pytest.mark.parametrize("objective", ["expected", "averaged"])
@pytest.mark.parametrize(("epochs", "due"), [(30, 20), (100, 20), (101, 21), (1000, 200)])
def test_nobody_leaving_is_told_after_a_fifth_of_the_epochs(
    objective: str, epochs: int, due: int
) -> None:
    found = given(hints(objective, epochs=epochs), [exits(full=UNITS)] * epochs)
    assert list(found) == [due]
    assert f"nobody left before layer {L} in {due} epochs" in found[due]
    assert "a small cost_weight such as 0.01" in found[due]


def test_with_a_price_the_hint_asks_for_a_higher_one() -> None:
    (hint,) = given(hints(cost_weight=0.02), [exits(full=UNITS)] * 20).values()
    assert "a larger cost_weight (now 0.02)" in hint


def test_one_that_leaves_is_enough() -> None:
    assert given(hints(epochs=100), [exits(full=UNITS - 1)] * 100) == {}


def test_going_on_is_not_held_against_the_sampled_objective() -> None:
    assert given(hints("sampled"), [exits(full=UNITS)] * 100) == {}


def test_a_model_without_exits_gets_no_hints() -> None:
    told = ExitHints(small_config(model="sasgnn"), SASGNN(3, 8, 2, num_layers=L))
    assert given(told, [exits(full=UNITS)] * 100) == {}
