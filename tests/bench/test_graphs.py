from __future__ import annotations

import pytest

from eegnn.bench import graphs


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphs, "BATCHES", {"enzymes": (12, 7, 9)})
    monkeypatch.setattr(graphs, "on_disk", lambda *_: False)


def test_a_batch_that_is_not_on_disk_is_generated() -> None:
    real, adj = graphs.batch_of("enzymes")
    assert not real
    assert (adj.num_graphs, adj.num_nodes) == (12, 84)


def test_time_stands_beside_work() -> None:
    rows = graphs.compare(passes=1)
    work = {row.exits: row.work for row in rows}
    assert work["spread"] == pytest.approx(0.5, abs=0.01)
    assert work["early"] == pytest.approx(0.14, abs=0.02)
    assert work["late"] == pytest.approx(0.875, abs=0.02)
    for row in rows:
        assert row.ratio == row.time / row.work
        assert [line for _, line, _, _ in row.points()] == ["proportional", "EEGNN"]
