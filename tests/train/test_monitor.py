"""Norms of gradients, and warnings about exits: when they come, and that each comes once."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import nn

from eegnn import EEGNN, SASGNN
from eegnn.nn.exits import Exits
from eegnn.train.monitor import ExitMonitor, GradientNorms
from eegnn.zoo.gcn import GCN
from tests.train.problems import small_config

L, UNITS = 4, 100


def norm(parameters: list[nn.Parameter]) -> float:
    """Literally: the root of the sum of all squares."""
    squares = [g**2 for p in parameters if p.grad is not None for g in p.grad.view(-1).tolist()]
    return math.sqrt(sum(squares))


def with_random_gradients(model: nn.Module, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        parameter.grad = torch.randn(parameter.shape, generator=generator)


def test_norms_are_means_over_the_steps_for_each_part() -> None:
    model = EEGNN(3, 8, 2, num_layers=4, head_layers=2)
    confidence = list(model.get_submodule("loop.confidence").parameters())
    temperature = list(model.get_submodule("loop.temperature").parameters())
    heads = {id(p) for p in confidence + temperature}
    parts = {
        "confidence": confidence,
        "temperature": temperature,
        "backbone": [p for p in model.parameters() if id(p) not in heads],
    }
    norms, expected = GradientNorms(model), dict.fromkeys(parts, 0.0)
    for seed in range(3):
        with_random_gradients(model, seed)
        norms.add()
        expected = {part: expected[part] + norm(parts[part]) / 3 for part in parts}
    assert norms.mean() == pytest.approx(expected, rel=1e-5)


def test_parts_make_up_the_whole_model() -> None:
    model = EEGNN(3, 8, 2, num_layers=4)
    norms = GradientNorms(model)
    with_random_gradients(model, 0)
    norms.add()
    squares = sum(value**2 for value in norms.mean().values())
    assert math.sqrt(squares) == pytest.approx(norm(list(model.parameters())), rel=1e-5)


@pytest.mark.parametrize("kind", [SASGNN, GCN])
def test_a_model_without_exits_has_a_backbone_only(kind: type[nn.Module]) -> None:
    model = kind(3, 8, 2, num_layers=4)
    norms = GradientNorms(model)
    with_random_gradients(model, 0)
    norms.add()
    expected = {"backbone": norm(list(model.parameters()))}
    assert norms.mean() == pytest.approx(expected, rel=1e-5)


def test_each_epoch_begins_anew() -> None:
    model = SASGNN(3, 8, 2, num_layers=4)
    norms = GradientNorms(model)
    for seed in range(2):
        with_random_gradients(model, seed)
        norms.add()
        assert norms.mean() == pytest.approx({"backbone": norm(list(model.parameters()))}, rel=1e-5)


def test_what_has_no_gradient_counts_as_0() -> None:
    model = EEGNN(3, 8, 2, num_layers=4)
    with_random_gradients(model, 0)
    for parameter in model.get_submodule("loop.temperature").parameters():
        parameter.grad = None
    norms = GradientNorms(model)
    norms.add()
    found = norms.mean()
    assert found["temperature"] == 0.0
    assert found["confidence"] > 0.0


def exits(at_once: int = 0, full: int = 0) -> Exits:
    """Exits of 100 units: so many at layer 1, so many at the last layer, the others at 2."""
    layer = torch.full((UNITS,), 2)
    layer[:at_once] = 1
    layer[UNITS - full :] = L
    return Exits(layer, torch.zeros(UNITS), torch.zeros(0, UNITS), torch.tensor(0.0), L)


def new_monitor(**settings: Any) -> ExitMonitor:
    return ExitMonitor(small_config(**settings), EEGNN(3, 8, 2, num_layers=L))


def warnings_of(monitor: ExitMonitor, epochs: list[Exits]) -> dict[int, str]:
    """Warnings by epoch."""
    found = {epoch: monitor.check(epoch, seen) for epoch, seen in enumerate(epochs, start=1)}
    return {epoch: warning for epoch, warning in found.items() if warning is not None}


def test_usual_exits_need_no_warning() -> None:
    assert warnings_of(new_monitor(), [exits(at_once=94, full=6)] * 100) == {}


def test_everyone_at_layer_1_is_told_at_once_and_once() -> None:
    found = warnings_of(
        new_monitor(), [exits(), exits(at_once=100), exits(), *[exits(at_once=100)] * 30]
    )
    assert list(found) == [2]
    assert found[2].startswith("all units left at layer 1 at epoch 2")


def test_nearly_everyone_at_layer_1_is_told_after_ten_epochs_in_a_row() -> None:
    nine = [exits(at_once=95)] * 9
    found = warnings_of(
        new_monitor(), [*nine, exits(at_once=94), *nine, exits(at_once=99), *nine, *nine]
    )
    assert list(found) == [20]
    assert "95% or more left at layer 1 in the 10 epochs up to 20" in found[20]


@pytest.mark.parametrize(
    ("cost_weight", "advice"),
    [
        (0.0, "a larger options.continue_bias"),
        (0.5, "a larger options.continue_bias or a smaller cost_weight (now 0.5)"),
    ],
)
def test_the_warning_names_what_this_run_can_change(cost_weight: float, advice: str) -> None:
    (warning,) = warnings_of(new_monitor(cost_weight=cost_weight), [exits(at_once=100)]).values()
    assert warning.endswith(f"train again with {advice}")


@pytest.mark.parametrize(("epochs", "due"), [(30, 20), (100, 20), (101, 21), (1000, 200)])
def test_nobody_leaving_is_told_after_a_fifth_of_the_epochs(epochs: int, due: int) -> None:
    found = warnings_of(new_monitor(epochs=epochs), [exits(full=UNITS)] * epochs)
    assert list(found) == [due]
    assert f"no unit left before layer {L} in {due} epochs" in found[due]
    assert "a small cost_weight such as 0.01" in found[due]


def test_with_a_price_the_warning_asks_for_a_higher_one() -> None:
    (warning,) = warnings_of(new_monitor(cost_weight=0.02), [exits(full=UNITS)] * 20).values()
    assert "a larger cost_weight (now 0.02)" in warning


def test_one_that_leaves_is_enough() -> None:
    assert warnings_of(new_monitor(epochs=100), [exits(full=UNITS - 1)] * 100) == {}


def test_a_budget_of_one_step_is_no_collapse() -> None:
    monitor = ExitMonitor(small_config(num_layers=1), EEGNN(3, 8, 2, num_layers=1))
    everyone = Exits.all_at(1, 1, torch.zeros(UNITS, 8))
    assert warnings_of(monitor, [everyone] * 100) == {}


def test_a_model_without_exits_gets_no_warnings() -> None:
    monitor = ExitMonitor(small_config(model="sasgnn"), SASGNN(3, 8, 2, num_layers=L))
    assert warnings_of(monitor, [exits(full=UNITS)] * 100) == {}
