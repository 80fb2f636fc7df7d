from __future__ import annotations

from typing import Any

import pytest

from eegnn.bench import blocks
from eegnn.bench.rows import table


def in_this_process(function: Any, *args: Any) -> Any:
    """Without the seconds that a new process takes."""
    return function(*args)


def test_memory_time_and_differences_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "in_new_process", in_this_process)
    monkeypatch.setattr(blocks, "LAYERS", 3)
    rows = blocks.compare([1000, 2000], passes=2, block=300, epoch=True)
    for row, nodes in zip(rows, (1000, 2000), strict=True):
        assert (row.nodes, row.edges) == (nodes, 10 * nodes)
        assert row.blocks == round(nodes / 300)
        assert row.raw == nodes * 16 * 4 + 2 * 10 * nodes * 8
        assert row.difference is not None
        assert row.difference <= 1e-5
        assert row.other_exits == 0
        assert row.epoch_cpu is not None
        assert row.epoch_cpu > 0
        assert row.as_dict()["cpu_per_node"] == row.cpu / nodes
    assert table(rows, 1).row_count == 2


def test_systems_that_do_not_report_memory_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "resident_bytes", lambda field: 0)
    with pytest.raises(OSError, match="needs Linux"):
        blocks.compare([1000], passes=1, block=300, epoch=False)
