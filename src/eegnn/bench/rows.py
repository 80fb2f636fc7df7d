"""The rows of a benchmark as a table, a figure and JSON."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

from rich.table import Table


@dataclass(frozen=True)
class BenchmarkRow(ABC):
    """One measurement. A subclass adds fields, and says which are printed and drawn."""

    title: ClassVar[str]
    columns: ClassVar[tuple[str, ...]]  #: fields and properties that the table shows
    x_label: ClassVar[str]
    y_label: ClassVar[str]
    log_axes: ClassVar[bool] = False

    @abstractmethod
    def points(self) -> Iterator[tuple[str, str, float, float]]:
        """The points of this row in the figure: panel, name of the line, x and y."""

    def as_dict(self) -> dict[str, Any]:
        """Return all fields and properties, for JSON."""
        members = vars(type(self)).items()
        properties = [name for name, member in members if isinstance(member, property)]
        return asdict(self) | {name: getattr(self, name) for name in properties}


def table(rows: Sequence[BenchmarkRow], threads: int) -> Table:
    """Return the rows as a table for the terminal, without columns that are empty in all rows."""
    names = [n for n in rows[0].columns if any(getattr(row, n) is not None for row in rows)]
    out = Table(title=f"{rows[0].title}, {threads} thread(s)")
    for name in names:
        is_text = isinstance(getattr(rows[0], name), str)
        out.add_column(name.replace("_", " "), justify="left" if is_text else "right")
    for row in rows:
        out.add_row(*(_text(getattr(row, name)) for name in names))
    return out


def _text(value: Any) -> str:
    """Three digits of a number, with M for millions; a pair is shown as a change."""
    if isinstance(value, tuple):
        return " → ".join(_text(one) for one in value)
    if isinstance(value, float):
        return f"{value:.3g}"
    if isinstance(value, int) and abs(value) >= 1e6:
        return f"{value / 1e6:,.3g} M"
    return "" if value is None else str(value)


def draw(rows: Sequence[BenchmarkRow], path: Path) -> None:
    """Draw the points of all rows; the ending of ``path`` chooses the format."""
    # pyplot would open windows and change what a notebook draws.
    from matplotlib.figure import Figure

    panels: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for row in rows:
        for panel, line, x, y in row.points():
            panels.setdefault(panel, {}).setdefault(line, []).append((x, y))
    figure = Figure(figsize=(1 + 3.6 * len(panels), 3.6), layout="constrained")
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for axis, (title, lines) in zip(axes, panels.items(), strict=True):
        for name, points in lines.items():
            axis.plot(*zip(*sorted(points), strict=True), marker="o", label=name)
        if rows[0].log_axes:
            axis.set_xscale("log")
            axis.set_yscale("log")
        ticks = sorted({x for points in lines.values() for x, _ in points})
        axis.set_xticks(ticks, [f"{x:g}" for x in ticks])
        axis.minorticks_off()
        axis.set(title=title, xlabel=rows[0].x_label)
    axes[0].set_ylabel(rows[0].y_label)
    axes[-1].legend(fontsize="small")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
