from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch_geometric.data import Data

from eegnn.data.problem import Problem


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
