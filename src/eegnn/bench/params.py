"""The paper's tables of parameter counts, beside ours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from eegnn.bench.figure import draw_panels
from eegnn.experiments.parameters import cells
from eegnn.experiments.study import Plan


@dataclass(frozen=True)
class Row:
    """One model on one data set."""

    dataset: str
    model: str
    layers: int
    ours: int
    paper: int

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def compare() -> list[Row]:
    """Count the parameters of the paper's models with 10 and 20 layers, width 32."""
    rows = []
    for cell in cells(Plan()):
        assert cell.known is not None
        assert cell.paper is not None
        layers = int(cell.column.split()[0])
        rows.append(Row(cell.group, cell.row, layers, int(cell.known), int(cell.paper.mean)))
    return rows


def table(rows: Sequence[Row]) -> Table:
    """For the terminal."""
    out = Table(title="Parameters, width 32")
    for column in ("data set", "model", "layers", "ours", "paper"):
        out.add_column(column, justify="left" if column in ("data set", "model") else "right")
    for row in rows:
        out.add_row(row.dataset, row.model, str(row.layers), f"{row.ours:,}", f"{row.paper:,}")
    return out


def draw(rows: Sequence[Row], path: Path) -> None:
    """Draw our counts against depth, a panel for each data set."""
    panels: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for row in rows:
        panels.setdefault(row.dataset, {}).setdefault(row.model, []).append((row.layers, row.ours))
    draw_panels(panels, path, "layers", "parameters")
