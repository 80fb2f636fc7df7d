from __future__ import annotations

import dataclasses
import math

import pytest
import torch

from eegnn import Exits
from eegnn.nn.exits import ExitRecorder


def exits(layers: list[int], num_layers: int = 4) -> Exits:
    layer = torch.tensor(layers, dtype=torch.int64)
    time = layer.float() / 2
    return Exits(layer, time, torch.zeros(num_layers, len(layers)), time.sum(), num_layers)


def test_the_histogram_counts_every_layer() -> None:
    histogram = exits([1, 2, 2, 4]).histogram
    assert histogram.dtype == torch.int64
    assert histogram.tolist() == [0, 1, 2, 0, 1]


def test_the_summary_is_plain_numbers() -> None:
    assert exits([1, 2, 2, 4]).summary() == {
        "min": 1,
        "median": 2.0,
        "mean": 2.25,
        "max": 4,
        "histogram": [0, 1, 2, 0, 1],
    }


@pytest.mark.parametrize(
    ("layers", "median"), [([3], 3.0), ([1, 2], 1.5), ([4, 1, 3], 3.0), ([1, 1, 3, 4], 2.0)]
)
def test_the_median_is_the_middle_or_between(layers: list[int], median: float) -> None:
    assert exits(layers).summary()["median"] == median


@pytest.mark.parametrize(
    ("layers", "collapsed"), [([1, 1, 1], True), ([1, 1, 2], False), ([4], False), ([], False)]
)
def test_collapsed_means_everyone_left_after_the_first_step(
    layers: list[int], collapsed: bool
) -> None:
    assert exits(layers).collapsed is collapsed


def test_no_unit_has_a_summary_too() -> None:
    empty = exits([])
    assert empty.histogram.tolist() == [0] * 5
    summary = empty.summary()
    assert {summary[k] for k in ("min", "median", "mean", "max")} == {None}
    assert repr(empty) == "Exits(units=0, num_layers=4, min=None, median=None, max=None)"


def test_repr_is_one_line() -> None:
    assert repr(exits([1, 2, 4])) == "Exits(units=3, num_layers=4, min=1, median=2.0, max=4)"


def test_exits_do_not_change() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        exits([1]).num_layers = 7  # type: ignore[misc]


def test_everyone_at_the_same_layer() -> None:
    fixed = Exits.all_at(3, 4, torch.zeros(2, 5), step_size=0.5)
    assert fixed.layer.tolist() == [3, 3]
    assert fixed.time.tolist() == [1.5, 1.5]
    assert fixed.tau.shape == (3, 2)
    assert float(fixed.cost) == 0.75


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
