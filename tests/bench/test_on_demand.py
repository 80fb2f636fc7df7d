from __future__ import annotations

from typing import Any

import pytest

from eegnn.bench import on_demand
from eegnn.bench.rows import table


def in_this_process(function: Any, *args: Any) -> Any:
    """Without the seconds that a new process takes."""
    return function(*args)


def test_every_method_answers_queries_of_every_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_demand, "in_new_process", in_this_process)
    monkeypatch.setattr(on_demand, "TRAINING_NODES", 100)
    monkeypatch.setattr(on_demand, "EPOCHS", 2)
    monkeypatch.setattr(on_demand, "LAYERS", 3)
    rows = on_demand.compare(1024, [1, 5], queries=2, files=16_000)
    assert [(row.graph, row.asked) for row in rows] == [
        *(("grid", asked) for asked in (1, 1, 1, 5, 5, 5, 5)),
        *(("power law", asked) for asked in (1, 1, 1, 5, 5, 5, 5)),
        ("files", 1),
        ("files", 16_000),
    ]
    assert len({row.method for row in rows[3:7]}) == 4
    for row in rows:
        assert 0 <= row.p50 <= row.p99
        if row.method == "EEGNN, on demand":
            assert row.touched is not None
            assert row.asked <= row.touched <= row.nodes
            assert row.exits is not None
            assert row.last_exit is not None
            assert 1 <= row.exits <= row.last_exit <= 3
    # The same nodes are asked of both.
    for first, second in ((3, 4), (10, 11)):
        assert rows[first].method == "EEGNN, on demand"
        assert rows[second].method == "EEGNN, whole graph"
        assert rows[first].exits == rows[second].exits
    assert rows[-1].touched == rows[-1].nodes == 16_000
    assert table(rows, 1).row_count == len(rows)
