from __future__ import annotations

import dataclasses

import pytest
import torch

from eegnn import Exits


def exits(layers: list[int], num_layers: int = 4) -> Exits:
    layer = torch.tensor(layers, dtype=torch.int64)
    time = layer.float() / 2
    return Exits(layer, time, torch.zeros(num_layers, len(layers)), time.sum(), num_layers)


def test_the_histogram_counts_every_layer() -> None:
    histogram = exits([0, 2, 2, 4]).histogram
    assert histogram.dtype == torch.int64
    assert histogram.tolist() == [1, 0, 2, 0, 1]


def test_the_summary_is_plain_numbers() -> None:
    assert exits([0, 1, 1, 4]).summary() == {
        "min": 0,
        "median": 1.0,
        "mean": 1.5,
        "max": 4,
        "histogram": [1, 2, 0, 0, 1],
    }


@pytest.mark.parametrize(
    ("layers", "median"), [([3], 3.0), ([0, 1], 0.5), ([4, 0, 3], 3.0), ([0, 1, 3, 4], 2.0)]
)
def test_the_median_is_the_middle_or_between(layers: list[int], median: float) -> None:
    assert exits(layers).summary()["median"] == median


@pytest.mark.parametrize(
    ("layers", "collapsed"), [([0, 0, 0], True), ([0, 0, 1], False), ([4], False), ([], False)]
)
def test_collapsed_means_everyone_left_at_once(layers: list[int], collapsed: bool) -> None:
    assert exits(layers).collapsed is collapsed


def test_no_unit_has_a_summary_too() -> None:
    empty = exits([])
    assert empty.histogram.tolist() == [0] * 5
    summary = empty.summary()
    assert {summary[k] for k in ("min", "median", "mean", "max")} == {None}
    assert repr(empty) == "Exits(units=0, num_layers=4, min=None, median=None, max=None)"


def test_repr_is_one_line() -> None:
    assert repr(exits([0, 1, 4])) == "Exits(units=3, num_layers=4, min=0, median=1.0, max=4)"


def test_exits_do_not_change() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        exits([1]).num_layers = 7  # type: ignore[misc]
