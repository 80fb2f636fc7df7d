from __future__ import annotations

import shutil

import pytest

from eegnn.bench import compiled
from tests.bench.test_training import small_graphs


@pytest.mark.skipif(shutil.which("c++") is None, reason="inductor needs a C++ compiler")
def test_both_models_are_timed_with_and_without_the_compiler(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(compiled, "graphs", lambda: {"small": small_graphs()["small"]})
    rows = compiled.compare(layers=1, passes=1)
    assert [row.model for row in rows] == ["SAS-GNN", "EEGNN"]
    assert all(0 < row.compiled < row.compilation for row in rows)
    assert all(row.ratio == row.eager / row.compiled for row in rows)
    assert [line for row in rows for _, line, _, _ in row.points()] == [
        "SAS-GNN", "SAS-GNN, compiled", "EEGNN", "EEGNN, compiled"
    ]  # fmt: skip
