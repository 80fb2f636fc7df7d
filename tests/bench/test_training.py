import pytest
import torch

from eegnn.bench import training
from eegnn.bench.inputs import skewed_graph


def small_graphs() -> dict[str, tuple[int, torch.Tensor]]:
    return {"small": (300, skewed_graph(300, 2_000)), "empty": (5, torch.zeros(2, 0).long())}


def test_both_ways_compute_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "graphs", small_graphs)
    rows = training.compare(passes=1)
    assert [row.graph for row in rows] == ["small", "empty"]
    assert all(row.difference < 1e-5 for row in rows)
    assert all(row.ratio == row.scatter / row.ours for row in rows)


def test_graphs_have_the_sizes_they_claim() -> None:
    (tolokers, dense), (grid, sparse) = training.graphs().values()
    assert (tolokers, grid) == (11_758, 10_000)
    assert abs(dense.size(1) / 1_038_000 - 1) < 0.02
    assert sparse.size(1) == 78_804
