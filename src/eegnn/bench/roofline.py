"""A step of SAS-GNN against the products in it, alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from rich.table import Table

from eegnn.bench.figure import draw_panels
from eegnn.bench.shapes import shape
from eegnn.bench.timing import medians, use_threads
from eegnn.nn.sas_conv import SASConv

WIDTHS = (32, 64, 128)
GRAPHS = ("minesweeper", "tolokers")


@dataclass(frozen=True)
class Row:
    """One graph and width; seconds for the step at inference and for its products."""

    graph: str
    nodes: int
    edges: int
    width: int
    step: float
    products: float

    @property
    def ratio(self) -> float:
        """How long a step takes, in units of its products."""
        return self.step / self.products

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**asdict(self), "ratio": self.ratio}


def compare(
    widths: Sequence[int] = WIDTHS,
    threads: int = 1,
    passes: int = 50,
    data_dir: Path | None = None,
) -> list[Row]:
    """Measure a step in place, and its two dense products and the sparse one.

    Args:
        widths: of the states.
        threads: for PyTorch.
        passes: timed passes of each, interleaved.
        data_dir: the data folder; ``None`` for the default.
    """
    with use_threads(threads), torch.no_grad():
        return [_compare(name, width, passes, data_dir) for name in GRAPHS for width in widths]


def table(rows: Sequence[Row], threads: int) -> Table:
    """For the terminal."""
    out = Table(title=f"A step of SAS-GNN and its products, {threads} thread(s)")
    for column in ("graph", "width", "step, ms", "products, ms", "ratio"):
        out.add_column(column, justify="left" if column == "graph" else "right")
    for row in rows:
        out.add_row(
            row.graph,
            str(row.width),
            f"{1e3 * row.step:.2f}",
            f"{1e3 * row.products:.2f}",
            f"{row.ratio:.2f}",
        )
    return out


def draw(rows: Sequence[Row], path: Path) -> None:
    """Draw both times against the width, a panel for each graph."""
    panels: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for row in rows:
        lines = panels.setdefault(row.graph, {})
        lines.setdefault("step", []).append((row.width, 1e3 * row.step))
        lines.setdefault("its products", []).append((row.width, 1e3 * row.products))
    draw_panels(panels, path, "width m'", "ms", log=True)


def _compare(name: str, width: int, passes: int, data_dir: Path | None) -> Row:
    torch.manual_seed(0)
    graph = shape(name, data_dir)
    step = SASConv(width, weight_scale=0.1).eval().bind(graph.adj)
    h, z = torch.rand(graph.nodes, width), torch.empty(graph.nodes, width)
    start, tau = h.clone(), torch.full((graph.nodes,), 0.1)
    omega, weight = step.omega.clone(), step.weight.clone()

    def whole() -> None:
        step.advance_(h, graph.adj, tau, z)

    def products() -> None:
        torch.mm(start, omega, out=z)
        torch.mm(graph.adj.propagate(start, "sym"), weight, out=z)

    found = medians({"step": whole, "products": products}, passes)
    return Row(name, graph.nodes, graph.edges, width, found["step"], found["products"])
