"""Inference of batches of graphs: the time against the layers that graphs take.

All graphs of a batch are computed until the last one has left.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from rich.table import Table
from torch_geometric.data import Batch, Data

from eegnn.bench.figure import draw_panels
from eegnn.bench.shapes import on_disk, skewed_graph
from eegnn.bench.stated import StatedExits
from eegnn.bench.timing import medians, use_threads
from eegnn.data.registry import open_dataset
from eegnn.graph import Adjacency
from eegnn.nn.eegnn import EEGNN
from eegnn.nn.pooling import POOLS

WIDTH, FEATURES, LAYERS = 32, 16, 21
#: Graphs in a batch, and nodes and undirected edges of a generated one, on average.
BATCHES = {"enzymes": (600, 33, 62), "peptides-func": (256, 151, 154)}
#: Shares of the budget between which graphs leave, evenly, after one layer at the earliest.
EXITS = {"early": (0.0, 0.25), "spread": (0.0, 1.0), "late": (0.75, 1.0)}


@dataclass(frozen=True)
class Row:
    """One batch with stated exits.

    Attributes:
        graphs, real, nodes: the batch, and whether it is the data set's own.
        exits: which distribution of exits.
        work: layers taken by nodes, as a share of the full loop's.
        time: of the full loop's time.
        fixed: what takes no step, of the full loop's time: encoding, pooling and decoding.
    """

    graphs: str
    real: bool
    nodes: int
    exits: str
    work: float
    time: float
    fixed: float

    @property
    def ideal(self) -> float:
        """The time if it followed the work, of the full loop's."""
        return self.fixed + self.work * (1 - self.fixed)

    @property
    def ratio(self) -> float:
        """Time in units of the work: 1 is ideal where nothing but steps takes time."""
        return self.time / self.work

    @property
    def to_ideal(self) -> float:
        """Time in units of the ideal, to which the fixed part belongs."""
        return self.time / self.ideal

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        found = {"ideal": self.ideal, "ratio": self.ratio, "to_ideal": self.to_ideal}
        return {**asdict(self), **found}


def compare(threads: int = 1, passes: int = 20, data_dir: Path | None = None) -> list[Row]:
    """Measure each batch with each distribution of exits, and with nobody leaving.

    Args:
        threads: for PyTorch.
        passes: timed passes of each, interleaved.
        data_dir: the data folder; ``None`` for the default.
    """
    with use_threads(threads):
        return [row for name in BATCHES for row in _compare(name, passes, data_dir)]


def table(rows: Sequence[Row], threads: int) -> Table:
    """For the terminal."""
    out = Table(title=f"Batches of graphs, EEGNN, {LAYERS} layers, {threads} thread(s)")
    columns = ("graphs", "nodes", "exits", "work", "ideal", "time", "time / work", "time / ideal")
    for column in columns:
        out.add_column(column, justify="left" if column in ("graphs", "exits") else "right")
    for row in rows:
        out.add_row(
            row.graphs if row.real else f"{row.graphs}, generated",
            f"{row.nodes:,}",
            row.exits,
            f"{row.work:.0%}",
            f"{row.ideal:.0%}",
            f"{row.time:.0%}",
            f"{row.ratio:.2f}",
            f"{row.to_ideal:.2f}",
        )
    return out


def draw(rows: Sequence[Row], path: Path) -> None:
    """Draw time against work, a panel for each batch."""
    panels: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for row in sorted(rows, key=lambda row: row.work):
        ideal = [(0.0, row.fixed), (1.0, 1.0)]
        lines = panels.setdefault(row.graphs, {"ideal": ideal, "EEGNN": []})
        lines["EEGNN"].append((round(row.work, 2), row.time))
    draw_panels(panels, path, "share of the layers", "share of the time")


def batch_of(name: str, data_dir: Path | None = None) -> tuple[bool, Adjacency]:
    """The structure of a batch of a data set: whether it is real, and it."""
    count, nodes, edges = BATCHES[name]
    real = on_disk(name, data_dir)
    if real:
        graphs = list(open_dataset(name, 0, data_dir).graphs[:count])
    else:
        graphs = [
            Data(edge_index=skewed_graph(nodes, edges, seed, skew=0.2), num_nodes=nodes)
            for seed in range(count)
        ]
    both = [Data(edge_index=graph.edge_index, num_nodes=graph.num_nodes) for graph in graphs]
    batch = Batch.from_data_list(both)
    return real, Adjacency.from_edge_index(batch.edge_index, batch.num_nodes, batch.batch, count)


def _compare(name: str, passes: int, data_dir: Path | None) -> list[Row]:
    real, adj = batch_of(name, data_dir)
    assert adj.batch is not None
    x = torch.rand(adj.num_nodes, FEATURES, generator=torch.Generator().manual_seed(0))
    order = torch.randperm(adj.num_graphs, generator=torch.Generator().manual_seed(0))
    stated = {"full": torch.full((adj.num_graphs,), LAYERS)}
    for exits, (low, high) in EXITS.items():
        spread = torch.linspace(low * LAYERS, high * LAYERS, adj.num_graphs)
        stated[exits] = spread.round().long().clamp(min=1)[order]
    torch.manual_seed(0)
    model = EEGNN(FEATURES, WIDTH, 6, LAYERS, level="graph")
    ways: dict[str, Callable[[], Any]] = {
        exits: StatedExits(model, x, adj, layer) for exits, layer in stated.items()
    }

    @torch.no_grad()
    def without_steps() -> None:
        model.decoder(POOLS[model.pool](model.encoder(x), adj))

    ways["none"] = without_steps
    found = medians(ways, passes)
    full = LAYERS * adj.num_nodes
    return [
        Row(
            name,
            real,
            adj.num_nodes,
            exits,
            float(stated[exits][adj.batch].sum()) / full,
            found[exits] / found["full"],
            found["none"] / found["full"],
        )
        for exits in EXITS
    ]
