from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from eegnn.report.curves import draw_curves
from eegnn.train.run import RunFolder
from tests.train.problems import small_config
from tests.train.records import SUMMARY, line_of

LINES: list[dict[str, Any]] = [
    {
        **line_of(epoch),
        "val": 0.5 + 0.1 * (epoch == 3),
        "exit_quantiles": [1.0, float(1 + epoch % 4), 4.0],
        "grad": {"confidence": 0.1, "temperature": 0.1, "backbone": 1.0},
    }
    for epoch in range(1, 6)
]


def written(path: Path, lines: list[dict[str, Any]], summary: Any = None, **settings: Any) -> Path:
    """A run folder with these records."""
    run = RunFolder(path)
    run.start(small_config(**settings), "classification")
    for line in lines:
        run.append_metrics(line)
    if summary is not None:
        run.write_summary(summary)
    return path


def panels(figure: Figure) -> tuple[Axes, Axes, Axes | None]:
    """Loss, validation score, exits."""
    loss = next(axis for axis in figure.axes if axis.get_ylabel() == "training loss")
    score = next(axis for axis in figure.axes if axis.get_ylabel().startswith("validation"))
    exits = [axis for axis in figure.axes if axis.get_ylabel().startswith("exit layer")]
    return loss, score, exits[0] if exits else None


def points(line: Line2D) -> list[list[float]]:
    return np.asarray(line.get_xydata()).tolist()


def test_curves_show_the_records(tmp_path: Path, drawn: list[Figure]) -> None:
    draw_curves(written(tmp_path / "run", LINES, SUMMARY), tmp_path / "curves.png")
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")
    loss, score, exits = panels(drawn[0])
    assert points(loss.lines[0]) == [[n, 1.0 / n] for n in range(1, 6)]
    assert score.lines[0].get_ydata() == pytest.approx([0.5, 0.5, 0.6, 0.5, 0.5])
    assert score.get_ylabel() == "validation roc_auc"
    assert exits is not None
    assert exits.lines[0].get_ydata() == pytest.approx([2, 3, 4, 1, 2])
    low, high = exits.get_ylim()
    assert 0 < low <= 1 < 4 <= high
    assert "of 4" in exits.get_ylabel()


def test_the_best_epoch_is_marked_in_both_panels(tmp_path: Path, drawn: list[Figure]) -> None:
    draw_curves(written(tmp_path / "run", LINES, SUMMARY), tmp_path / "curves.png")
    loss, score, exits = panels(drawn[0])
    assert exits is not None
    assert points(score.lines[1]) == [[3, 0.6]]
    for panel in (loss, exits):
        assert points(panel.lines[-1]) == [[3, 0], [3, 1]]  # from bottom to top
    assert loss.get_title() == "best epoch 3: validation 0.6000, test 0.5500"


def test_a_run_that_is_not_finished_has_no_best_epoch_yet(
    tmp_path: Path, drawn: list[Figure]
) -> None:
    draw_curves(written(tmp_path / "run", LINES[:2]), tmp_path / "curves.svg")
    assert "<svg" in (tmp_path / "curves.svg").read_text()
    loss, score, _ = panels(drawn[0])
    assert (len(loss.lines), len(score.lines), loss.get_title()) == (1, 1, "")


def test_a_model_without_exits_has_one_panel(tmp_path: Path, drawn: list[Figure]) -> None:
    fixed = {"grad": {"backbone": 1.0}, "exit_quantiles": [4.0, 4.0, 4.0]}
    lines = [{**line, **fixed} for line in LINES]
    draw_curves(written(tmp_path / "run", lines, SUMMARY, model="gcn"), tmp_path / "curves.png")
    assert panels(drawn[0])[2] is None


@pytest.mark.parametrize(
    "own", [{"grad": {"backbone": 1.0}}, {"exit_quantiles": [4.0, 4.0, 4.0]}, {}]
)
def test_exits_are_drawn_for_who_leaves_or_could(
    own: dict[str, Any], tmp_path: Path, drawn: list[Figure]
) -> None:
    lines = [{**line, **own} for line in LINES]
    draw_curves(written(tmp_path / "run", lines), tmp_path / "curves.png")
    assert panels(drawn[0])[2] is not None


@pytest.mark.parametrize(("last", "scale"), [(0.5, "linear"), (0.001, "log"), (0.0, "linear")])
def test_a_loss_that_falls_far_is_drawn_on_a_logarithmic_axis(
    last: float, scale: str, tmp_path: Path, drawn: list[Figure]
) -> None:
    lines = [*LINES[:2], {**LINES[2], "loss": last}]
    draw_curves(written(tmp_path / "run", lines), tmp_path / "curves.png")
    assert panels(drawn[0])[0].get_yscale() == scale


@pytest.mark.parametrize("count", [1, 300])
@pytest.mark.parametrize("dataset", ["texas", "/a/rather/long/way/to/the/file/my-graph.npz"])
def test_nothing_overlaps_or_is_cut_off(
    count: int, dataset: str, tmp_path: Path, drawn: list[Figure]
) -> None:
    lines = [{**LINES[0], "epoch": epoch} for epoch in range(1, count + 1)]
    summary = {**SUMMARY, "best_epoch": count}
    draw_curves(written(tmp_path / "run", lines, summary, dataset=dataset), tmp_path / "curves.png")
    (figure,) = drawn
    renderer = FigureCanvasAgg(figure).get_renderer()
    top, _, below = panels(figure)
    assert below is not None
    panel_boxes = [panel.get_tightbbox(renderer) for panel in (top, below)]
    boxes: list[Any] = [*panel_boxes, *(text.get_window_extent(renderer) for text in figure.texts)]
    for box, other in itertools.combinations(boxes, 2):
        assert not box.overlaps(other)
    for box in boxes:
        assert 0 <= box.x0 < box.x1 <= figure.bbox.width


def test_a_run_without_a_finished_epoch_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no epoch was finished"):
        draw_curves(written(tmp_path / "run", []), tmp_path / "curves.png")
    assert not (tmp_path / "curves.png").exists()


def test_a_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_text(json.dumps(LINES[0]) + "\n")
    with pytest.raises(FileNotFoundError, match="holds no run"):
        draw_curves(tmp_path, tmp_path / "curves.png")
