from __future__ import annotations

from pathlib import Path

import pytest
import torch

from eegnn import Adjacency
from eegnn.bench import roofline
from eegnn.bench.shapes import Shape, skewed_graph


def small(name: str, data_dir: Path | None = None) -> Shape:
    adj = Adjacency.from_edge_index(skewed_graph(100, 300), 100)
    return Shape(name, False, torch.rand(100, 4), adj, 2)


def test_a_step_is_set_against_its_products(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(roofline, "shape", small)
    rows = roofline.compare(widths=[8, 16], passes=2)
    assert [(row.graph, row.width) for row in rows] == [
        ("minesweeper", 8),
        ("minesweeper", 16),
        ("tolokers", 8),
        ("tolokers", 16),
    ]
    assert all(row.ratio == row.step / row.products > 0 for row in rows)
    assert roofline.table(rows, 1).row_count == 4
    roofline.draw(rows, tmp_path / "roofline.png")
    assert (tmp_path / "roofline.png").is_file()
