"""Figures of experiments; the ending of a path chooses the format."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from eegnn.studies.experiment import CellResult, Table
from eegnn.studies.tables import by_group, by_row


def draw_lines(table: Table, path: Path, x_label: str, *, log_x: bool = False) -> None:
    """Draw a panel for each group, a line for each row; the columns are numbers along the x-axis.

    The band around a line is one standard deviation. A group without runs has no panel. With
    ``log_x`` the columns are spaced by their logarithm.
    """
    groups = by_group([result for result in table if result.mean is not None])
    with _panels(len(groups), path) as axes:
        for axis, (group, results) in zip(axes, groups.items(), strict=False):
            for row, line in by_row(results).items():
                points = [(float(r.cell.column), r.mean, r.sd or 0.0) for r in line]
                x, mean, sd = np.array(points, dtype=float).T
                axis.plot(x, mean, marker="o", label=row)
                axis.fill_between(x, mean - sd, mean + sd, alpha=0.15)
            if log_x:
                axis.set_xscale("log", base=2)
            ticks = list(dict.fromkeys(r.cell.column for r in table if r.cell.group == group))
            axis.set_xticks([float(tick) for tick in ticks], ticks, minor=False)
            axis.minorticks_off()
            axis.set(title=group, xlabel=x_label)
        axes[0].set_ylabel(table[0].cell.quantity.name)
        if groups:
            axes[-1].legend()


def draw_exits(table: Table, path: Path) -> None:
    """Draw a panel for each group with a box for each row: the exit layers of the runs of its
    first column.

    A box reaches from the first to the third quartile, with the median as a line and the mean as a
    triangle; whiskers reach to the 5th and 95th percentile.
    """
    groups = by_group([result for result in table if result.runs])
    with _panels(len(groups), path) as axes:
        for axis, (group, results) in zip(axes, groups.items(), strict=False):
            boxes = [exit_box(line[0]) for line in by_row(results).values()]
            axis.bxp(boxes, showfliers=False, showmeans=True)
            axis.set(title=group, ylim=(0, None))
            if len(boxes) > 4:  # side by side, their names would overlap
                axis.tick_params("x", rotation=40)
        axes[0].set_ylabel("exit layer")


def exit_box(result: CellResult) -> dict[str, Any]:
    """Return what matplotlib's ``bxp`` needs, from the histograms of the runs."""
    count = np.sum([run["exits"]["histogram"] for run in result.runs], axis=0)
    layers = np.repeat(np.arange(len(count)), count)
    quantiles = np.quantile(layers, (0.05, 0.25, 0.5, 0.75, 0.95))
    names = ("whislo", "q1", "med", "q3", "whishi")
    box = dict(zip(names, quantiles, strict=True))
    return {"label": result.cell.row, "mean": layers.mean(), **box}


def draw_tradeoff(
    table: Table, path: Path, score: str, costs: Sequence[str], *, log_x: bool = False
) -> None:
    """Draw a panel for each group and cost: what each row scores against what it costs.

    ``score`` and ``costs`` are columns. Bars are one standard deviation. A row without the cost,
    such as a model of fixed depth, is a dashed line across. A row without runs is left out, and so
    is a group without any.
    """
    at = {(r.cell.group, r.cell.row, r.cell.column): r for r in table if r.mean is not None}
    groups = by_group([result for result in at.values() if result.cell.column == score])
    panels = [(group, cost) for group in groups for cost in costs]
    rows = list(by_row(table))
    with _panels(len(panels), path) as axes:
        for axis, (group, cost) in zip(axes, panels, strict=False):
            for result in groups[group]:
                row = result.cell.row
                style: dict[str, Any] = {"color": f"C{rows.index(row)}", "label": row}
                if found := at.get((group, row, cost)):
                    sd = result.sd or 0.0
                    axis.errorbar(found.mean, result.mean, sd, marker="o", capsize=3, **style)
                    axis.set_xlabel(found.cell.quantity.name)
                else:
                    axis.axhline(result.mean, linestyle="--", **style)
            if log_x:
                axis.set_xscale("log")
            axis.set(title=group, ylabel=groups[group][0].cell.quantity.name)
        if panels:
            axes[-1].legend()


def draw_exit_distributions(table: Table, path: Path) -> None:
    """Draw for each group and row how many leave at each layer, and at each time.

    The table has the columns ``"layer"`` and ``"time"``; its runs have ``exits`` and ``exit_time``.
    """
    layers = [r for r in table if r.runs and r.cell.column != "time"]
    times = [r for r in table if r.runs and r.cell.column == "time"]
    columns = max(len(layers), len(times), 1)
    with _panels(columns, path, rows=2) as axes:
        for axis, result in zip(axes, layers, strict=False):
            counts = result.runs[0]["exits"]["histogram"][1:]  # no node leaves at layer 0
            axis.bar(range(1, len(counts) + 1), counts)
            axis.set(title=f"{result.cell.group}, {result.cell.row}", xlabel="exit layer")
        for axis, result in zip(axes[columns:], times, strict=False):
            histogram = result.runs[0]["exit_time"]
            axis.stairs(histogram["counts"], histogram["edges"], fill=True)
            axis.set_xlabel("exit time")
        for axis in axes[::columns]:
            axis.set_ylabel("test nodes")


@contextmanager
def _panels(columns: int, path: Path, rows: int = 1) -> Iterator[list[Any]]:
    """Yield axes, so many side by side in each row but at least one, and write the picture."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot as plt

    columns = max(columns, 1)
    figure, axes = plt.subplots(
        rows, columns, figsize=(4.4 * columns, 3.8 * rows), layout="constrained", squeeze=False
    )
    try:
        yield list(axes.flat)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=110)
    finally:
        plt.close(figure)
