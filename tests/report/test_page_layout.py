from __future__ import annotations

import numpy as np
import pytest
import torch

from eegnn import Adjacency
from eegnn.data.minesweeper import minesweeper
from eegnn.report.page_layout import (
    board_side,
    grid_shape,
    sample_nodes,
    spring_layout,
    to_unit_square,
)
from tests.graphs import both_ways
from tests.train.problems import ring


def adjacency(edge_index: torch.Tensor, n: int) -> Adjacency:
    return Adjacency.from_edge_index(edge_index, n)


@pytest.mark.parametrize("side", [2, 3, 10])
def test_a_board_is_recognised(side: int) -> None:
    assert board_side(adjacency(minesweeper(side).edge_index, side * side)) == side


def test_other_graphs_are_no_board() -> None:
    edges = minesweeper(4).edge_index
    shuffled = torch.randperm(16, generator=torch.Generator().manual_seed(0))[edges]
    without_one = edges[:, ~((edges == 5).any(0) & (edges == 6).any(0))]
    for edge_index, n in [(shuffled, 16), (without_one, 16), (ring(16), 16), (edges, 17)]:
        assert board_side(adjacency(edge_index, n)) is None


def test_a_sample_is_around_its_start() -> None:
    found = sample_nodes(adjacency(ring(1000), 1000), 500, 21)
    assert found.tolist() == list(range(490, 511))


def test_a_hub_does_not_fill_a_sample_alone() -> None:
    arms = [(0, k) for k in range(1, 101)] + [(k, 100 + k) for k in range(1, 101)]
    found = sample_nodes(adjacency(both_ways(arms), 201), 0, 13)
    assert len(found) == 13
    assert sum(1 <= node <= 100 for node in found) < 12


def test_a_sample_goes_on_in_other_components() -> None:
    found = sample_nodes(adjacency(both_ways([(0, 1), (2, 3), (4, 5)]), 7), 0, 7)
    assert found.tolist() == list(range(7))


@pytest.mark.parametrize("n", [1, 2, 30, 150])
def test_layouts_fit_and_are_the_same_again(n: int) -> None:
    edges = ring(n)[:, :n] if n > 2 else np.zeros((2, 0), dtype=np.int64)
    first, second = (spring_layout(n, np.asarray(edges), steps=30) for _ in range(2))
    assert first.shape == (n, 2)
    assert first.min() >= 0
    assert first.max() <= 1
    np.testing.assert_array_equal(first, second)


def test_neighbours_are_drawn_close_to_each_other() -> None:
    n = 60
    place = spring_layout(n, ring(n)[:, :n].numpy())
    gap = np.linalg.norm(place[:, None] - place[None], axis=-1)
    beside = np.mean([gap[i, (i + 1) % n] for i in range(n)])
    assert beside < 0.4 * gap[np.triu_indices(n, 1)].mean()


def test_proportions_are_kept() -> None:
    found = to_unit_square(np.array([[0.0, 0.0], [8.0, 0.0], [8.0, 4.0]]))
    np.testing.assert_allclose(found, [[0, 0.25], [1, 0.25], [1, 0.75]], atol=0.01)


@pytest.mark.parametrize("count", [1, 2, 7, 35, 48])
def test_every_graph_has_a_cell(count: int) -> None:
    columns, rows = grid_shape(count)
    assert columns * (rows - 1) < count <= columns * rows
