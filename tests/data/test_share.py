from __future__ import annotations

import pytest
import torch

from eegnn.data.problem import Problem
from eegnn.data.share import take_share
from eegnn.data.transfer import transfer
from tests.train.problems import node_problem


@pytest.fixture
def whole() -> Problem:
    return transfer("line", 3, 0.1, 0)  # parts of 100, 10 and 10 graphs


def kept(part: torch.Tensor, problem: Problem) -> list[object]:
    return [problem.graphs[index] for index in part.tolist()]


def test_each_part_keeps_its_share_evenly_spaced(whole: Problem) -> None:
    some = take_share(whole, 0.2)
    assert len(some.graphs) == 20 + 2 + 2
    assert "0.2 of the graphs" in some.notes["share"]
    for name in ("train", "val", "test"):
        part, all_of_it = getattr(some, name), getattr(whole, name)
        assert kept(part, some) == kept(all_of_it[::5], whole)


def test_a_part_is_never_empty(whole: Problem) -> None:
    some = take_share(whole, 0.001)
    assert [len(part) for part in (some.train, some.val, some.test)] == [1, 1, 1]


def test_the_whole_is_a_share(whole: Problem) -> None:
    some = take_share(whole, 1.0)
    assert kept(some.train, some) == kept(whole.train, whole)
    assert kept(some.test, some) == kept(whole.test, whole)


def test_one_graph_has_no_share() -> None:
    with pytest.raises(ValueError, match="is one graph"):
        take_share(node_problem(), 0.5)


def test_more_than_the_whole_is_refused(whole: Problem) -> None:
    with pytest.raises(ValueError, match=r"share must be in \[0, 1\], got 2"):
        take_share(whole, 2.0)
