"""A figure of score against cost of the exit rules of a run."""

from __future__ import annotations

from pathlib import Path

from eegnn.analysis.calibrate import KEPT, Calibration
from eegnn.report.curves import BLUE, GREEN, GREY, ORANGE


def draw_calibration(found: Calibration, path: Path) -> None:
    """Draw what thresholds, and thresholds with limits, cost and score on test units.

    The rules were chosen on validation units, so the curve of the best pairs need not rise.
    """
    from matplotlib.figure import Figure
    from matplotlib.ticker import PercentFormatter

    figure = Figure(figsize=(7, 4.4), layout="constrained")
    panel = figure.subplots()
    thresholds = sorted((point.cost, point.score) for point in found.test.points)
    best = sorted((choice.test.cost, choice.test.score) for choice in found.best)
    panel.plot(*zip(*thresholds, strict=True), color=BLUE, label="exit_threshold alone")
    if best:
        panel.plot(*zip(*best, strict=True), color=GREEN, label="with max_layers")
    kept = found.keeping()
    marks = {
        "full depth": (found.full, "s", GREY),
        "own rule": (found.own, "o", ORANGE),
        f"keeps {KEPT:.0%} of its score": (kept, "D", GREEN),
    }
    for name, (choice, marker, color) in marks.items():
        label = f"{name}: {choice.test.cost:.0%}, {choice.test.score:.4g}"
        panel.plot(choice.test.cost, choice.test.score, marker, color=color, label=label)
    panel.axvline(kept.test.cost, color=GREEN, linestyle=":", linewidth=1.2)
    panel.xaxis.set_major_formatter(PercentFormatter(1.0))
    panel.set(
        xlabel="mean exit layer, of the budget", ylabel=f"test {found.metric}", xlim=(0, 1.03)
    )
    panel.grid(color="0.92")
    panel.legend()
    figure.savefig(path, dpi=120)
