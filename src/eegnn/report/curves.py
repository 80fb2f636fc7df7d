"""A figure of the learning curves of a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from eegnn.train.run import RunFolder

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BLUE, ORANGE, GREEN, GREY = "#1f5fa8", "#c04a00", "#2a7f62", "#666666"


def draw_curves(run_folder: Path, path: Path) -> None:
    """Draw loss and validation score of a run, and below them the exit layers.

    The lower panel is for models with exits: the median of the exit layers on the validation part,
    and the band from their 10 % to their 90 % quantile. The best epoch is marked once the run is
    finished. At least one epoch must be.
    """
    # pyplot would open windows and change what a notebook draws.
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    run = RunFolder(run_folder)
    config, lines, summary = run.config(), run.metrics(), run.summary()
    if not lines:
        raise ValueError(f"{run_folder} has nothing to draw: no epoch was finished")
    # A model without heads whose units never leave before the end has a fixed depth.
    has_exits = "confidence" in lines[-1].get("grad", {}) or any(
        line["exit_quantiles"][0] < config.num_layers for line in lines
    )
    figure = Figure(figsize=(8, 6 if has_exits else 3.8), layout="constrained")
    panels: list[Axes] = list(figure.subplots(1 + has_exits, sharex=True, squeeze=False)[:, 0])
    name = Path(config.dataset).name  # the data may be a file somewhere
    figure.suptitle(
        f"{config.model} on {name}, split {config.split}, seed {config.seed}", fontweight="bold"
    )
    _draw_scores(panels[0], lines, summary)
    if has_exits:
        _draw_exits(panels[1], lines, config.num_layers)
    for panel in panels:
        panel.grid(axis="x", color="0.92")
        panel.set_xlim(0, 1.02 * len(lines) + 1)
        if summary is not None:
            panel.axvline(summary["best_epoch"], color=GREY, linestyle=":", linewidth=1.2)
    panels[-1].xaxis.set_major_locator(MaxNLocator(integer=True))
    panels[-1].set_xlabel("epoch")
    figure.savefig(path, dpi=120)


def _draw_scores(panel: Axes, lines: list[dict[str, Any]], summary: dict[str, Any] | None) -> None:
    """Loss on the left axis, validation score on the right one, the best epoch as a ring."""
    loss = _column(lines, "loss")
    right = panel.twinx()
    panel.plot(_column(lines, "epoch"), loss, color=BLUE, **_style(lines))
    right.plot(_column(lines, "epoch"), _column(lines, "val"), color=ORANGE, **_style(lines))
    if min(loss) > 0 and max(loss) > 100 * min(loss):
        panel.set_yscale("log")
    metric = "score" if summary is None else summary["metric"]
    labels = {panel: ("training loss", BLUE), right: (f"validation {metric}", ORANGE)}
    for axis, (label, colour) in labels.items():
        axis.set_ylabel(label, color=colour)
        axis.tick_params(axis="y", colors=colour)
    if summary is not None:
        ring: dict[str, Any] = {"marker": "o", "markersize": 9, "markerfacecolor": "none"}
        right.plot(summary["best_epoch"], summary["val"], color=ORANGE, **ring)
        panel.set_title(
            f"best epoch {summary['best_epoch']}: validation {summary['val']:.4f}, "
            f"test {summary['test']:.4f}",
            fontsize="medium",
            color=GREY,
        )


def _draw_exits(panel: Axes, lines: list[dict[str, Any]], num_layers: int) -> None:
    """Median and 10–90 % band of the exit layers, out of all layers."""
    from matplotlib.ticker import MaxNLocator

    epochs = _column(lines, "epoch")
    low, median, high = zip(*_column(lines, "exit_quantiles"), strict=True)
    panel.fill_between(
        epochs, low, high, color=GREEN, alpha=0.25, linewidth=0, label="10 % to 90 % quantile"
    )
    panel.plot(epochs, median, color=GREEN, label="median of the validation part", **_style(lines))
    panel.axhline(num_layers, color=GREY, linewidth=0.8)
    panel.set_ylim(0.5, num_layers + 0.5)
    panel.yaxis.set_major_locator(MaxNLocator(integer=True))
    panel.set_ylabel(f"exit layer (of {num_layers})")
    # Above the panel: inside, any corner may hold the curve.
    panel.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2, frameon=False)


def _column(lines: list[dict[str, Any]], name: str) -> list[Any]:
    return [line[name] for line in lines]


def _style(lines: list[dict[str, Any]]) -> dict[str, Any]:
    """Markers for few epochs: a line of a single epoch would be invisible."""
    return {"linewidth": 1.4, "marker": "." if len(lines) < 20 else ""}
