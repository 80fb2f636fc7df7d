from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from eegnn.analysis.calibrate import Calibration, Choice
from eegnn.analysis.exit_rule import Curve, Point
from eegnn.report.calibration import draw_calibration

COSTS = (0.1, 0.4, 0.7)


def calibration(metric: str, val: tuple[float, ...], test: tuple[float, ...]) -> Calibration:
    """Three thresholds, the last of which is as good as the own rule."""

    def curve(scores: tuple[float, ...], shift: float) -> Curve:
        points = [Point(0.1 * k, None, COSTS[k] + shift, scores[k]) for k in range(3)]
        own = Point(None, None, COSTS[2] + shift, scores[2])
        return Curve(metric, tuple(points), own, Point(1.0, None, 1.0, scores[2]))

    on_val, on_test = curve(val, 0.0), curve(test, 0.05)
    best = tuple(map(Choice, on_val.points, on_test.points))
    return Calibration(metric, 20, "", on_val, on_test, best)


HIGHER = calibration("roc_auc", (0.5, 0.795, 0.8), (0.4, 0.69, 0.7))
LOWER = calibration("mae", (3.0, 2.015, 2.0), (3.1, 2.2, 2.1))


@pytest.mark.parametrize("found", [HIGHER, LOWER])
def test_the_cheapest_rule_that_keeps_a_share_of_the_score(found: Calibration) -> None:
    assert found.keeping() == found.best[1]
    assert found.keeping(0.999).val == found.val.own
    assert found.keeping(0.4 if found is HIGHER else 0.5) == found.best[0]
    assert found.suggestions()["keeps"]["test"]["cost"] == pytest.approx(0.45)


@pytest.mark.parametrize("found", [HIGHER, LOWER])
def test_the_picture_shows_the_test_units(
    found: Calibration, tmp_path: Path, drawn: list[Figure]
) -> None:
    draw_calibration(found, tmp_path / "calibration.png")
    assert (tmp_path / "calibration.png").stat().st_size > 0
    (axes,) = drawn[0].axes
    lines = {
        str(line.get_label()).partition(":")[0]: np.asarray(line.get_xydata(), dtype=float)
        for line in axes.lines
    }
    points = np.array([(point.cost, point.score) for point in found.test.points])
    np.testing.assert_allclose(lines["exit_threshold alone"], points)
    np.testing.assert_allclose(lines["with max_layers"], points)
    np.testing.assert_allclose(lines["keeps 99% of its score"], points[1:2])
    np.testing.assert_allclose(lines["own rule"], points[2:])
    np.testing.assert_allclose(lines["full depth"], np.array([(1.0, points[2, 1])]))
