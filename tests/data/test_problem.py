from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch_geometric.data import Data

from eegnn.data.problem import Problem
from eegnn.data.transfer import transfer
from tests.train.problems import node_problem


def molecule(numbers: int = 0) -> Data:
    return Data(
        x=torch.zeros(3, 2 + numbers),
        edge_index=torch.tensor([[0, 1], [1, 0]]),
        edge_attr=torch.zeros(2, 1, dtype=torch.int64),
        y=torch.tensor([0]),
    )


def problem_of(graph: Data) -> Problem:
    one = torch.tensor([0])
    return Problem(
        "molecules",
        [graph],
        "graph",
        "classification",
        "accuracy",
        2,
        one,
        one,
        one,
        inductive=True,
        node_categories=(5, 3),
        edge_categories=(4,),
    )


@pytest.mark.parametrize("numbers", [0, 6])
def test_a_model_sees_a_column_for_each_kind_and_the_numbers(numbers: int) -> None:
    problem = problem_of(molecule(numbers))
    assert (problem.in_channels, problem.edge_dim) == (8 + numbers, 4)


def test_without_categories_a_model_sees_the_columns() -> None:
    problem = replace(problem_of(molecule()), node_categories=(), edge_categories=())
    assert (problem.in_channels, problem.edge_dim) == (2, 1)


def test_there_are_as_many_columns_as_categories() -> None:
    problem = problem_of(molecule())
    with pytest.raises(ValueError, match=r"molecules: x must have shape \[n, 3 or more\]"):
        replace(problem, node_categories=(5, 3, 2))
    with pytest.raises(ValueError, match=r"molecules: edge_attr must have shape \[n, 2 or more\]"):
        replace(problem, edge_categories=(4, 2))


@pytest.fixture
def whole() -> Problem:
    return transfer("line", 3, 0.1, 0)  # parts of 100, 10 and 10 graphs


def kept(part: torch.Tensor, problem: Problem) -> list[object]:
    return [problem.graphs[index] for index in part.tolist()]


def test_each_part_keeps_its_share_evenly_spaced(whole: Problem) -> None:
    some = whole.subsample(0.2)
    assert len(some.graphs) == 20 + 2 + 2
    assert "0.2 of the graphs" in some.notes["share"]
    for name in ("train", "val", "test"):
        part, all_of_it = getattr(some, name), getattr(whole, name)
        assert kept(part, some) == kept(all_of_it[::5], whole)


def test_a_part_is_never_empty(whole: Problem) -> None:
    some = whole.subsample(0.001)
    assert [len(part) for part in (some.train, some.val, some.test)] == [1, 1, 1]


def test_the_whole_is_a_share(whole: Problem) -> None:
    some = whole.subsample(1.0)
    assert kept(some.train, some) == kept(whole.train, whole)
    assert kept(some.test, some) == kept(whole.test, whole)


def test_one_graph_has_no_share() -> None:
    with pytest.raises(ValueError, match="is one graph"):
        node_problem().subsample(0.5)


def test_more_than_the_whole_is_refused(whole: Problem) -> None:
    with pytest.raises(ValueError, match=r"share must be in \[0, 1\], got 2"):
        whole.subsample(2.0)
