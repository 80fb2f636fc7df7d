from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from eegnn.studies.experiment import Cell, CellResult
from eegnn.studies.figures import (
    draw_exit_distributions,
    draw_exits,
    draw_lines,
    draw_tradeoff,
    exit_box,
)
from eegnn.studies.quantities import MEAN_EXIT, PARAMETERS


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """The figures, which are not closed so that one can look at them."""
    figures: list[Figure] = []
    monkeypatch.setattr(plt, "close", figures.append)
    return figures


def known(group: str, row: str, column: str, value: float | None) -> CellResult:
    return CellResult(Cell(group, row, column, PARAMETERS, known=value))


def test_each_group_is_a_panel_and_each_row_a_line(drawn: list[Figure], tmp_path: Path) -> None:
    table = [
        known("left", "a", "2", 1.0), known("left", "a", "8", 3.0),
        known("left", "b", "2", 5.0), known("left", "b", "8", None),
        known("right", "a", "2", 7.0), known("right", "b", "2", None),
    ]  # fmt: skip
    draw_lines(table, tmp_path / "new" / "lines.png", "layers", log_x=True)
    left, right = drawn[0].axes
    assert [line.get_label() for line in left.lines] == ["a", "b"]
    assert np.array_equal(left.lines[0].get_xydata(), [[2, 1], [8, 3]])
    assert np.array_equal(left.lines[1].get_xydata(), [[2, 5]])
    assert len(right.lines) == 1
    assert (tmp_path / "new" / "lines.png").stat().st_size > 0


def test_a_group_without_runs_has_no_panel(drawn: list[Figure], tmp_path: Path) -> None:
    table = [known("here", "a", "2", 1.0), known("absent", "a", "2", None)]
    draw_lines(table, tmp_path / "lines.png", "layers")
    (axis,) = drawn[0].axes
    assert axis.get_title() == "here"
    draw_lines(table[1:], tmp_path / "nothing.png", "layers")
    assert (tmp_path / "nothing.png").stat().st_size > 0


def test_a_box_is_that_of_all_runs_together() -> None:
    counts = np.array([[0, 3, 0, 5, 1, 0], [0, 1, 1, 0, 0, 9]])
    lines = tuple({"exits": {"histogram": row.tolist()}} for row in counts)
    box = exit_box(CellResult(Cell("g", "EEGNN", "exit", MEAN_EXIT), lines))
    layers = [layer for row in counts for layer, count in enumerate(row) for _ in range(count)]
    assert box["label"] == "EEGNN"
    assert box["med"] == np.median(layers)
    assert box["mean"] == np.mean(layers)
    ends = [box[name] for name in ("whislo", "q1", "q3", "whishi")]
    assert ends == list(np.percentile(layers, [5, 25, 75, 95]))


def test_rows_without_runs_have_no_box(drawn: list[Figure], tmp_path: Path) -> None:
    line = {"exits": {"histogram": [1, 2, 3]}}
    some = [
        CellResult(Cell("sssp", "EEGNN", "exit", MEAN_EXIT), (line,)),
        CellResult(Cell("sssp", "AP-GCN", "exit", MEAN_EXIT)),
    ]
    draw_exits(some, tmp_path / "exits.png")
    (axis,) = drawn[0].axes
    assert [label.get_text() for label in axis.get_xticklabels()] == ["EEGNN"]
    draw_exits(some[1:], tmp_path / "none.png")
    assert (tmp_path / "none.png").exists()


def test_scores_are_drawn_against_each_cost_and_a_fixed_depth_is_a_line_across(
    drawn: list[Figure], tmp_path: Path
) -> None:
    table = [
        known("board", "fixed", "score", 90.0), known("board", "fixed", "ms", 3.0),
        known("board", "exits", "score", 89.0), known("board", "exits", "ms", 2.0),
        known("board", "exits", "cost", 60.0),
        known("board", "not run", "score", None), known("board", "not run", "cost", None),
        known("absent", "exits", "score", None), known("absent", "exits", "cost", None),
    ]  # fmt: skip
    draw_tradeoff(table, tmp_path / "tradeoff.png", "score", ["cost", "ms"], log_x=True)
    by_cost, by_time = drawn[0].axes
    across, point = by_cost.lines[:2]
    assert across.get_label() == "fixed"
    assert np.array_equal(across.get_ydata(), [90, 90])
    assert np.array_equal(point.get_xydata(), [[60, 89]])
    assert by_time.get_legend_handles_labels()[1] == ["fixed", "exits"]
    assert np.array_equal(by_time.lines[0].get_xydata(), [[3, 90]])
    draw_tradeoff(table[-2:], tmp_path / "none.png", "score", ["cost"])
    assert (tmp_path / "none.png").stat().st_size > 0


def test_exits_are_drawn_in_steps_and_in_time(drawn: list[Figure], tmp_path: Path) -> None:
    line = {
        "exits": {"mean": 2.0, "histogram": [0, 1, 2, 1]},
        "exit_time": {"mean": 0.5, "counts": [3, 1], "edges": [0.0, 0.5, 1.0]},
    }
    places = [Cell("board", "fold 1", column, MEAN_EXIT) for column in ("layer", "time")]
    table = [*(CellResult(place, (line,)) for place in places), CellResult(places[0])]
    draw_exit_distributions(table, tmp_path / "exits.png")
    steps, times = drawn[0].axes
    bars = [bar.get_bbox() for bar in steps.patches]  # type: ignore[attr-defined]
    assert [bar.height for bar in bars] == [1, 2, 1]
    assert [(bar.x0 + bar.x1) / 2 for bar in bars] == pytest.approx([1, 2, 3])
    assert np.array_equal(times.patches[0].get_data().values, [3, 1])  # type: ignore[attr-defined]
    draw_exit_distributions([CellResult(places[0])], tmp_path / "none.png")
    assert (tmp_path / "none.png").stat().st_size > 0
