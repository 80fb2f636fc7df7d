"""Pictures of benchmarks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

Line = Sequence[tuple[float, float]]


def draw_panels(
    panels: Mapping[str, Mapping[str, Line]],
    path: Path,
    x_label: str,
    y_label: str,
    *,
    log: bool = False,
) -> None:
    """Draw a panel for each graph with a line for each model.

    Args:
        panels: graph → model → points ``(x, y)``.
        path: where to write; the ending chooses the format.
        x_label, y_label: what is drawn.
        log: whether both axes are logarithmic.
    """
    # Without pyplot, which would open windows and change what a notebook draws.
    from matplotlib.figure import Figure

    figure = Figure(figsize=(1 + 3.6 * len(panels), 3.6), layout="constrained")
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for axis, (title, lines) in zip(axes, panels.items(), strict=True):
        for name, points in lines.items():
            axis.plot(*zip(*points, strict=True), marker="o", label=name)
        ticks = sorted({x for points in lines.values() for x, _ in points})
        if log:
            axis.set_xscale("log")
            axis.set_yscale("log")
        axis.set_xticks(ticks, [f"{x:g}" for x in ticks])
        axis.minorticks_off()
        axis.set(title=title, xlabel=x_label)
    axes[0].set_ylabel(y_label)
    axes[-1].legend(fontsize="small")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
