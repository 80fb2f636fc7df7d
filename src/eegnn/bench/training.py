"""A training step of SASGNN against the same mathematics by PyG's message passing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from rich.table import Table
from torch import Tensor
from torch_geometric.nn import MessagePassing

from eegnn.bench.figure import draw_panels
from eegnn.bench.shapes import skewed_graph
from eegnn.bench.timing import medians, use_threads
from eegnn.data.minesweeper import minesweeper
from eegnn.graph import Adjacency
from eegnn.nn.sas_conv import SASConv
from eegnn.nn.sas_gnn import SASGNN


@dataclass(frozen=True)
class Row:
    """One graph; times in seconds for forward and backward."""

    graph: str
    nodes: int
    edges: int
    ours: float
    scatter: float
    difference: float

    @property
    def ratio(self) -> float:
        """How many times faster ours is."""
        return self.scatter / self.ours

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**asdict(self), "ratio": self.ratio}


def graphs() -> dict[str, tuple[int, Tensor]]:
    """Name, number of nodes and edges of the graphs to measure on."""
    return {
        "size of Tolokers": (11_758, skewed_graph(11_758, 519_000)),
        "100 × 100 grid": (10_000, minesweeper().edge_index),
    }


def compare(threads: int = 1, passes: int = 5) -> list[Row]:
    """Measure both ways on each of :func:`graphs`, alternating, and take medians."""
    with use_threads(threads):
        return [_compare(name, n, edges, passes) for name, (n, edges) in graphs().items()]


def draw(rows: list[Row], path: Path) -> None:
    """Draw the time of a training step against the number of edges."""
    ours = sorted((row.edges, 1e3 * row.ours) for row in rows)
    scatter = sorted((row.edges, 1e3 * row.scatter) for row in rows)
    panels = {"training step of SASGNN": {"ours": ours, "PyG's message passing": scatter}}
    draw_panels(panels, path, "directed edges", "ms", log=True)


def table(rows: list[Row], threads: int) -> Table:
    """For the terminal."""
    out = Table(title=f"Training step of SASGNN, 10 layers, width 32, {threads} thread(s)")
    for column in ("graph", "nodes", "edges", "ours, ms", "scatter, ms", "ratio", "difference"):
        out.add_column(column, justify="left" if column == "graph" else "right")
    for row in rows:
        out.add_row(
            row.graph,
            f"{row.nodes:,}",
            f"{row.edges:,}",
            f"{1e3 * row.ours:.0f}",
            f"{1e3 * row.scatter:.0f}",
            f"{row.ratio:.1f} ×",
            f"{row.difference:.0e}",
        )
    return out


def _compare(name: str, num_nodes: int, edge_index: Tensor, passes: int) -> Row:
    torch.manual_seed(0)
    model = SASGNN(16, 32, 2, num_layers=10)
    x = torch.rand(num_nodes, 16)
    adj = Adjacency.from_edge_index(edge_index, num_nodes)
    scale = adj.degree.clamp(min=1).rsqrt()
    value = scale[adj.row] * scale[adj.col.long()]
    ways = {
        "ours": lambda: model(x, adj),
        "scatter": lambda: _by_scatter(model, x, adj.edge_index, value),
    }
    difference = (ways["ours"]() - ways["scatter"]()).abs().max().item()
    median = medians({way: _step(forward, model) for way, forward in ways.items()}, passes)
    return Row(name, num_nodes, edge_index.size(1), median["ours"], median["scatter"], difference)


def _by_scatter(model: SASGNN, x: Tensor, edge_index: Tensor, value: Tensor) -> Tensor:
    """Eq. 2 by PyG's default message passing: gather, weigh, scatter."""
    conv, around = model.convs[0], _WeightedSum()
    assert isinstance(conv, SASConv)
    h = model.encoder(x)
    omega, weight = conv.omega, conv.weight
    for _ in range(model.num_layers):
        received = around(h @ weight, edge_index, value)
        h = h + model.step_size * torch.tanh(received - torch.relu(h @ omega)).relu()
    return model.decoder(h)


class _WeightedSum(MessagePassing):
    def forward(self, x: Tensor, edge_index: Tensor, value: Tensor) -> Tensor:
        return self.propagate(edge_index, x=x, value=value)

    def message(self, x_j: Tensor, value: Tensor) -> Tensor:
        return value.unsqueeze(-1) * x_j


def _step(forward: Callable[[], Tensor], model: SASGNN) -> Callable[[], None]:
    def step() -> None:
        model.zero_grad()
        forward().square().mean().backward()

    return step
