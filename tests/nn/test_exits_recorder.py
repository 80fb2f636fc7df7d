from __future__ import annotations

import math

import pytest
import torch

from eegnn.nn.exits import ExitRecorder


def record(leave: list[list[bool]], delta: float = 0.0, max_layers: int = 3) -> ExitRecorder:
    """Steps of sizes 1, 2, …, after which the state of each unit is the number of steps."""
    recorder = ExitRecorder(len(leave[0]), max_layers, 4, torch.zeros(()))
    for count, row in enumerate(leave, start=1):
        recorder.decide(torch.full((len(row),), delta))
        size = torch.full((len(row),), float(count))
        recorder.step(size, torch.tensor(row), size.unsqueeze(-1))
    return recorder


def test_a_unit_is_recorded_when_it_first_leaves_and_the_last_step_takes_the_rest() -> None:
    recorder = record([[True, False, False], [False, True, False], [True, False, False]])
    assert recorder.layer.tolist() == [1, 2, 3]
    assert recorder.left.all()
    state, exits = recorder.finish(expected=False)
    assert state.tolist() == [[1.0], [2.0], [3.0]]
    assert exits.time.tolist() == [1.0, 3.0, 6.0]
    assert exits.cost.item() == pytest.approx(6 / 3 / 4)


def test_states_at_the_exits_are_the_same_without_gradients() -> None:
    leave = [[False, True, False, False], [True, False, False, False], [False] * 4]
    with torch.no_grad():
        kept = record(leave).finish(expected=False)[0]
    assert torch.equal(kept, record(leave).finish(expected=False)[0])


def test_before_the_last_step_some_have_not_left() -> None:
    recorder = record([[True, False], [True, False]])
    assert recorder.left.tolist() == [True, False]


def test_the_expected_cost_counts_each_step_with_the_probability_of_taking_it() -> None:
    odds = math.log(3)  # a unit continues with probability 3/4
    recorder = record([[True], [False], [False]], odds)
    assert recorder.log_stay.exp().item() == pytest.approx((3 / 4) ** 3)
    expected = (1 + 3 / 4 + (3 / 4) ** 2) / 4
    assert recorder.finish(expected=True)[1].cost.item() == pytest.approx(expected)
