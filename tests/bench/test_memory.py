from __future__ import annotations

from typing import Any

import pytest

from eegnn import SASGNN
from eegnn.bench import memory
from eegnn.compute import CPU
from tests.bench.inputs import small_graph


def test_what_is_saved_is_counted_once() -> None:
    graph = small_graph()
    model = SASGNN(4, 8, 2, num_layers=1)
    one = memory.saved_bytes(model, graph.x, graph.adj)
    assert one >= graph.x.numel() * 4 + 2 * 200 * 8 * 4  # features, states, activations
    assert one < 20 * 200 * 8 * 4 + 100_000


def test_recompute_keeps_little_beyond_the_states(monkeypatch: pytest.MonkeyPatch) -> None:
    def measured(function: Any, *args: Any) -> int:
        assert function is memory._peak
        return 7 if args[-1] else 9

    monkeypatch.setattr(memory, "benchmark_graph", small_graph)
    monkeypatch.setattr(memory, "in_new_process", measured)
    rows = memory.compare("minesweeper", [2, 20], passes=1)
    assert [(row.model, row.layers) for row in rows] == [
        ("SAS-GNN", 2),
        ("SAS-GNN", 20),
        ("EEGNN", 2),
        ("EEGNN", 20),
    ]
    for row in rows:
        assert row.saved[1] < row.saved[0]
        assert row.peak == (9, 7)
        assert [line for _, line, _, _ in row.points()] == ["plain", "recompute"]
    few, many = (row.beyond[1] for row in rows if row.model == "SAS-GNN")
    assert many <= 1.5 * few


def test_the_peak_of_a_step_is_measured() -> None:
    graph = small_graph()
    assert memory._peak(CPU, graph.x, graph.adj.edge_index, "EEGNN", 2, 2, False) >= 0
