from __future__ import annotations

from pathlib import Path

import pytest
import torch

from eegnn import SASGNN, Adjacency
from eegnn.bench import memory
from eegnn.bench.shapes import Shape, skewed_graph


def small(name: str = "minesweeper", data_dir: Path | None = None) -> Shape:
    return Shape(
        name, False, torch.rand(300, 4), Adjacency.from_edge_index(skewed_graph(300, 900), 300), 2
    )


def test_what_is_saved_is_counted_once() -> None:
    graph = small()
    model = SASGNN(4, 8, 2, num_layers=1)
    one = memory.saved_bytes(model, graph.x, graph.adj)
    assert one >= graph.x.numel() * 4 + 2 * 300 * 8 * 4  # features, states, activations
    assert one < 20 * 300 * 8 * 4 + 100_000


def test_recompute_keeps_little_beyond_the_states(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(memory, "shape", small)
    monkeypatch.setattr(memory, "_peak", lambda *_: 0)
    monkeypatch.setattr(memory, "ProcessPoolExecutor", _Here)
    rows = memory.compare(layers=[2, 20], passes=1)
    for row in rows:
        assert row.difference <= 1e-10
        assert row.saved[1] < row.saved[0]
    few, many = (row.beyond[1] for row in rows if row.model == "SAS-GNN")
    assert many <= 1.5 * few
    assert memory.table(rows, 1).row_count == len(rows) == 4
    memory.draw(rows, tmp_path / "memory.png")
    assert (tmp_path / "memory.png").is_file()


class _Here:
    """Runs in this process what would run in another."""

    def __init__(self, *_: object, **__: object) -> None: ...

    def __enter__(self) -> _Here:
        return self

    def __exit__(self, *_: object) -> None: ...

    def submit(self, function: object, *given: object) -> _Here:
        self.found = function(*given)  # type: ignore[operator]
        return self

    def result(self) -> object:
        return self.found
