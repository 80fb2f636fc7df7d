"""A training step of SASGNN against the same mathematics by gather and scatter."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import torch
from rich.table import Table
from torch import Tensor
from torch_geometric.utils import remove_self_loops, to_undirected

from eegnn.data.minesweeper import minesweeper
from eegnn.graph import Adjacency
from eegnn.nn.sas import SASConv
from eegnn.nn.sasgnn import SASGNN


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
    with _threads(threads):
        return [_compare(name, n, edges, passes) for name, (n, edges) in graphs().items()]


def skewed_graph(num_nodes: int, num_edges: int, seed: int = 0) -> Tensor:
    """Draw about ``num_edges`` undirected edges with skewed degrees; ``[2, 2 · edges]``."""
    generator = torch.Generator().manual_seed(seed)
    weight = torch.rand(num_nodes, generator=generator).square() + 0.02
    ends = torch.multinomial(weight, 2 * num_edges, replacement=True, generator=generator)
    return to_undirected(remove_self_loops(ends.view(2, -1))[0], num_nodes=num_nodes)


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
    times: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(passes):
        for way, forward in ways.items():
            times[way].append(_seconds(forward, model))
    median = {way: statistics.median(values) for way, values in times.items()}
    return Row(name, num_nodes, edge_index.size(1), median["ours"], median["scatter"], difference)


def _by_scatter(model: SASGNN, x: Tensor, edge_index: Tensor, value: Tensor) -> Tensor:
    """Eq. 2 as message passing is usually written: gather, weigh, index_add."""
    conv = model.convs[0]
    assert isinstance(conv, SASConv)
    source, target = edge_index
    h = model.encoder(x)
    omega, weight = conv.omega, conv.weight
    for _ in range(model.num_layers):
        message = (h @ weight)[source] * value.unsqueeze(-1)
        received = torch.zeros_like(h).index_add(0, target, message)
        h = h + model.step_size * torch.tanh(received - torch.relu(h @ omega)).relu()
    return model.decoder(h)


def _seconds(forward: Callable[[], Tensor], model: SASGNN) -> float:
    model.zero_grad()
    start = time.perf_counter()
    forward().square().mean().backward()
    return time.perf_counter() - start


@contextmanager
def _threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
