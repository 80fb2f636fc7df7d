from __future__ import annotations

from pathlib import Path

import pytest
import torch

from eegnn import Adjacency
from eegnn.data.open import open_problem
from eegnn.data.powerlaw import CLASSES, powerlaw

N = 20_000


def test_edges_are_different_undirected_and_ten_a_node() -> None:
    for n in (1000, 1537):
        data = powerlaw(n)
        adj = Adjacency.from_edge_index(data.edge_index, n)  # warns of directed edges
        assert adj.num_edges == data.edge_index.size(1) == n * 10 // 2 * 2
        assert data.x.shape == (n, 16)
        assert data.x.dtype == torch.float32
        assert torch.bincount(data.y).min() > n / CLASSES / 3


def test_the_same_seed_gives_the_same_graph() -> None:
    first, again, other = powerlaw(1000, 3), powerlaw(1000, 3), powerlaw(1000, 4)
    for key in ("x", "edge_index", "y"):
        assert torch.equal(first[key], again[key])
        assert not torch.equal(first[key], other[key])


def test_degrees_have_a_power_law_tail() -> None:
    degree = torch.bincount(powerlaw(50_000).edge_index[0])
    # An edge in five is drawn by weight alone, so far out a degree is about 25 more than the
    # edges that follow P(w > t) ~ t^−1.5. An exponential tail would fall by e⁶ = 400 here.
    fall = int((degree > 80).sum()) / int((degree > 140).sum())
    assert (115 / 55) ** 1.5 / 2 < fall < (115 / 55) ** 1.5 * 2


def test_neighbours_tell_more_of_the_label_than_the_features_of_a_node() -> None:
    data = powerlaw(N)
    half = N // 2
    around = Adjacency.from_edge_index(data.edge_index, N).propagate(data.x, "mean")

    def nearest_mean(x: torch.Tensor) -> float:
        means = torch.stack([x[:half][data.y[:half] == c].mean(dim=0) for c in range(CLASSES)])
        return float((torch.cdist(x[half:], means).argmin(dim=1) == data.y[half:]).float().mean())

    alone, together = nearest_mean(data.x), nearest_mean(around)
    assert 1 / CLASSES < alone < 0.4
    assert together > alone + 0.2


def test_it_is_opened_by_name_with_a_share_of_its_size(tmp_path: Path) -> None:
    problem = open_problem("powerlaw@0.001", 2, tmp_path)
    graph = problem.graphs[0]
    assert graph.num_nodes == 1000
    assert torch.equal(graph.x, powerlaw(1000, 2).x)
    parts = torch.cat([problem.train, problem.val, problem.test])
    assert sorted(parts.tolist()) == list(range(1000))
    with pytest.raises(ValueError, match="size must be in"):
        open_problem("powerlaw@2")
    with pytest.raises(ValueError, match="nodes must be at least 1000, got 500"):
        open_problem("powerlaw@0.0005")
