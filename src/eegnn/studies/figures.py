"""Figures of experiments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from eegnn.studies.study import Measured


def draw_lines(table: Sequence[Measured], path: Path, x_label: str, *, log_x: bool = False) -> None:
    """Draw a panel for each group, a line for each row; the columns are numbers along the x-axis.

    The band around a line is one standard deviation. A group without runs has no panel.

    Args:
        table: of an experiment, with one quantity.
        path: where to write; the ending chooses the format.
        x_label: what the columns are.
        log_x: whether they are spaced by their logarithm.
    """
    groups = list(dict.fromkeys(m.cell.group for m in table if m.mean is not None))
    with _panels(max(len(groups), 1), path) as axes:
        for axis, group in zip(axes, groups, strict=False):
            for row in dict.fromkeys(m.cell.row for m in table):
                line = [m for m in table if (m.cell.group, m.cell.row) == (group, row)]
                _draw_line(axis, row, line)
            if log_x:
                axis.set_xscale("log", base=2)
            ticks = list(dict.fromkeys(m.cell.column for m in table if m.cell.group == group))
            axis.set_xticks([float(tick) for tick in ticks], ticks, minor=False)
            axis.minorticks_off()
            axis.set(title=group, xlabel=x_label)
        axes[0].set_ylabel(table[0].cell.quantity.name)
        if groups:
            axes[-1].legend()


def _draw_line(axis: Any, row: str, line: Sequence[Measured]) -> None:
    points = [(float(m.cell.column), m.mean, m.sd or 0.0) for m in line if m.mean is not None]
    if not points:
        return
    x, mean, sd = np.array(points).T
    axis.plot(x, mean, marker="o", label=row)
    axis.fill_between(x, mean - sd, mean + sd, alpha=0.15)


def draw_exits(table: Sequence[Measured], path: Path) -> None:
    """Draw a panel for each group with a box for each row: who left when, in all runs together.

    A box reaches from the first to the third quartile, with the median as a line and the mean as a
    triangle; whiskers reach to the 5th and 95th percentile.

    Args:
        table: of an experiment whose lines have exits; each row once in a group.
        path: where to write; the ending chooses the format.
    """
    table = [m for m in table if m.lines]
    groups = list(dict.fromkeys(m.cell.group for m in table))
    with _panels(max(len(groups), 1), path) as axes:
        for axis, group in zip(axes, groups, strict=False):
            boxes = [exit_box(m) for m in table if m.cell.group == group]
            axis.bxp(boxes, showfliers=False, showmeans=True)
            axis.set(title=group, ylim=(0, None))
            if len(boxes) > 4:  # side by side, their names would overlap
                axis.tick_params("x", rotation=40)
        axes[0].set_ylabel("exit layer")


def exit_box(measured: Measured) -> dict[str, Any]:
    """Return what matplotlib's ``bxp`` needs, from the histograms of the runs."""
    count = np.sum([line["exits"]["histogram"] for line in measured.lines], axis=0)
    layers = np.repeat(np.arange(len(count)), count)
    low, q1, median, q3, high = np.quantile(layers, (0.05, 0.25, 0.5, 0.75, 0.95))
    return {
        "label": measured.cell.row,
        "whislo": low,
        "q1": q1,
        "med": median,
        "q3": q3,
        "whishi": high,
        "mean": layers.mean(),
    }


def draw_bars(table: Sequence[Measured], path: Path) -> None:
    """Draw a panel for each group, a bar for each row and column, and the paper's value as a line.

    Args:
        table: of an experiment.
        path: where to write; the ending chooses the format.
    """
    groups = list(dict.fromkeys(m.cell.group for m in table))
    rows = list(dict.fromkeys(m.cell.row for m in table))
    columns = list(dict.fromkeys(m.cell.column for m in table))
    width = 0.8 / len(columns)
    with _panels(len(groups), path) as axes:
        for axis, group in zip(axes, groups, strict=True):
            for number, column in enumerate(columns):
                some = [m for m in table if (m.cell.group, m.cell.column) == (group, column)]
                place = (
                    np.array([rows.index(m.cell.row) for m in some])
                    + (number - (len(columns) - 1) / 2) * width
                )
                axis.bar(place, [m.mean or 0.0 for m in some], width, label=column)
                told = [(p, m.cell.paper.mean) for p, m in zip(place, some, strict=True)
                        if m.cell.paper is not None]  # fmt: skip
                for x, y in told:
                    axis.plot([x - width / 2, x + width / 2], [y, y], color="black")
            axis.set_xticks(range(len(rows)), rows, rotation=40, ha="right")
            axis.set(title=group)
        said = "; ".join(dict.fromkeys(m.cell.quantity.name for m in table))
        axes[0].set_ylabel(f"{said} (black: the paper)")
        axes[0].legend()


def draw_tradeoff(table: Sequence[Measured], path: Path) -> None:
    """Draw a panel for each group and each further column: the first column against it.

    Args:
        table: of an experiment with the same columns for each row, scores first.
        path: where to write; the ending chooses the format.
    """
    at = {(m.cell.group, m.cell.row, m.cell.column): m.mean for m in table}
    score, *costs = dict.fromkeys(m.cell.column for m in table)
    panels = [
        (group, cost) for group in dict.fromkeys(m.cell.group for m in table) for cost in costs
    ]
    with _panels(len(panels), path) as axes:
        for axis, (group, cost) in zip(axes, panels, strict=True):
            for row in dict.fromkeys(m.cell.row for m in table):
                x, y = at.get((group, row, cost)), at.get((group, row, score))
                if x is not None and y is not None:
                    axis.scatter(x, y)
                    axis.annotate(row, (x, y), xytext=(4, 4), textcoords="offset points")
            axis.set_xscale("log")
            axis.set(title=group, xlabel=cost, ylabel=score)


def draw_rules(table: Sequence[Measured], path: Path, rules: Sequence[tuple[str, str]]) -> None:
    """Draw a panel for each group: what each row scores against what it costs, by several rules.

    The rules of a row are joined, their bars are one standard deviation. A row whose cost is not
    measured, such as a model of fixed depth, is a dashed line across. A row without runs is left
    out, and so is a group without any.

    Args:
        table: of an experiment.
        path: where to write; the ending chooses the format.
        rules: for each rule the columns of its score and of its cost.
    """
    at = {(m.cell.group, m.cell.row, m.cell.column): m for m in table}
    names = {m.cell.column: m.cell.quantity.name for m in table}
    own = rules[0][0]
    scored = [m for m in table if m.cell.column == own and m.mean is not None]
    groups = list(dict.fromkeys(m.cell.group for m in scored))
    with _panels(max(len(groups), 1), path) as axes:
        for axis, group in zip(axes, groups, strict=False):
            for number, row in enumerate(dict.fromkeys(m.cell.row for m in scored)):
                found = [(at.get((group, row, y)), at.get((group, row, x))) for y, x in rules]
                points = [
                    (cost.mean, score.mean, score.sd or 0.0)
                    for score, cost in found
                    if score is not None and cost is not None and cost.mean is not None
                ]
                fixed = at.get((group, row, own))
                if points:
                    x, mean, sd = np.array(points).T
                    axis.errorbar(x, mean, sd, marker="o", capsize=3, color=f"C{number}", label=row)
                elif fixed is not None and fixed.mean is not None:
                    axis.axhline(fixed.mean, color=f"C{number}", linestyle="--", label=row)
            axis.set(title=group, xlabel=names[rules[0][1]])
        if groups:
            axes[0].set_ylabel(names[own])
            axes[-1].legend()


def draw_exit_distributions(table: Sequence[Measured], path: Path) -> None:
    """Draw for each group and row how many leave at each layer, and at each time.

    Args:
        table: of an experiment with the columns ``"layer"`` and ``"time"``, whose lines have
            ``exits`` and ``exit_time``.
        path: where to write; the ending chooses the format.
    """
    drawn = [m for m in table if m.lines]
    upper = [m for m in drawn if m.cell.column != "time"]
    lower = [m for m in drawn if m.cell.column == "time"]
    columns = max(len(upper), len(lower), 1)
    with _panels(columns, path, rows=2) as axes:
        for row, measured in enumerate((upper, lower)):
            for axis, m in zip(axes[row * columns :], measured, strict=False):
                (line, *_) = m.lines
                if m.cell.column == "time":
                    edges, counts = line["exit_time"]["edges"], line["exit_time"]["counts"]
                    axis.stairs(counts, edges, fill=True)
                else:
                    counts = line["exits"]["histogram"][1:]  # nobody leaves at layer 0
                    axis.bar(range(1, len(counts) + 1), counts)
                    axis.set_title(f"{m.cell.group}, {m.cell.row}")
                axis.set_xlabel(f"exit {m.cell.column}")
            axes[row * columns].set_ylabel("test nodes")


@contextmanager
def _panels(count: int, path: Path, rows: int = 1) -> Iterator[list[Any]]:
    """Yield axes, ``count`` side by side in each row, and write the picture."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(
        rows, count, figsize=(4.4 * count, 3.8 * rows), layout="constrained", squeeze=False
    )
    try:
        yield list(axes.flat)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=110)
    finally:
        plt.close(figure)
