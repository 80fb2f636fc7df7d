from __future__ import annotations

import copy
import dataclasses

import pytest
import torch
from torch.utils._pytree import tree_flatten, tree_unflatten

from eegnn import Exits


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


def test_tree_functions_of_pytorch_reach_every_tensor() -> None:
    found = exits([1, 2, 4])
    leaves, spec = tree_flatten(found)
    assert [id(leaf) for leaf in leaves] == [
        id(tensor) for tensor in (found.layer, found.time, found.tau, found.cost)
    ]
    again = tree_unflatten([leaf + 1 for leaf in leaves], spec)
    assert isinstance(again, Exits)
    assert again.layer.tolist() == [2, 3, 5]
    assert (again.num_layers, again.backend) == (4, "reference")


def test_a_framework_may_set_fields_of_a_copy() -> None:
    """Lightning's ``apply_to_collection`` copies a dataclass and sets its fields."""
    found = exits([1, 2])
    moved = copy.copy(found)
    for field in dataclasses.fields(moved):
        setattr(moved, field.name, getattr(found, field.name))
    assert moved.layer is found.layer


def test_detached_and_moved_exits_are_exits() -> None:
    found = exits([1, 2])
    found.cost = torch.tensor(0.5, requires_grad=True)
    assert not found.detach().cost.requires_grad
    assert found.to("meta").layer.device.type == "meta"
    assert found.to("meta").num_layers == 4
    assert found.cpu().layer.tolist() == [1, 2]


def test_everyone_at_the_same_layer() -> None:
    fixed = Exits.all_at(3, 4, torch.zeros(2, 5), step_size=0.5)
    assert fixed.layer.tolist() == [3, 3]
    assert fixed.time.tolist() == [1.5, 1.5]
    assert fixed.tau.shape == (3, 2)
    assert float(fixed.cost) == 0.75
