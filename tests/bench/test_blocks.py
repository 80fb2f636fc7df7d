from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from eegnn.bench import blocks


def here(call: Any, *given: Any) -> Any:
    """Without the seconds that a new process takes."""
    return call(*given)


def test_memory_time_and_differences_are_measured(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(blocks, "_fresh", here)
    monkeypatch.setattr(blocks, "LAYERS", 3)
    rows = blocks.compare([1000, 2000], block=300, epoch=True)
    for row, nodes in zip(rows, (1000, 2000), strict=True):
        assert (row.nodes, row.edges) == (nodes, 10 * nodes)
        assert row.blocks == round(nodes / 300)
        assert row.raw == nodes * 16 * 4 + 2 * 10 * nodes * 8
        assert row.difference is not None
        assert row.difference <= 1e-5
        assert row.other_exits == 0
        assert row.epoch_cpu is not None
        assert row.epoch_cpu > 0
    assert blocks.table(rows, 1).row_count == 2
    assert rows[0].as_dict()["cpu_per_node"] == rows[0].cpu / 1000
    blocks.draw(rows, tmp_path / "blocks.png")
    assert (tmp_path / "blocks.png").exists()
