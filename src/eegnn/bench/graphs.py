"""Inference of batches of graphs: the time against the layers that graphs take.

The reference loop computes all graphs of a batch until the last one has left.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from torch_geometric.data import Batch, Data

from eegnn.bench.inputs import on_disk, predict_with_fixed_exits, skewed_graph
from eegnn.bench.rows import BenchmarkRow
from eegnn.bench.timing import medians
from eegnn.compute import CPU, Compute
from eegnn.data.registry import open_dataset
from eegnn.graph import Adjacency
from eegnn.nn.eegnn import EEGNN

WIDTH, FEATURES, LAYERS = 32, 16, 21
#: Graphs in a batch, and nodes and undirected edges of a generated one, on average.
BATCHES = {"enzymes": (600, 33, 62), "peptides-func": (256, 151, 154)}
#: Shares of the budget between which graphs leave, evenly, after one layer at the earliest.
EXITS = {"early": (0.0, 0.25), "spread": (0.0, 1.0), "late": (0.75, 1.0)}


@dataclass(frozen=True)
class BatchRow(BenchmarkRow):
    """One batch with one distribution of exit layers."""

    title = f"Batches of graphs, EEGNN, {LAYERS} layers"
    columns = ("graphs", "real", "nodes", "exits", "work", "time", "ratio")
    x_label, y_label = "share of the layers", "share of the time"

    graphs: str
    real: bool  #: whether the batch is the data set's own
    nodes: int
    exits: str  #: which distribution, of :data:`EXITS`
    work: float  #: layers taken by nodes, as a share of all nodes taking all layers
    time: float  #: as a share of the time without early exits

    @property
    def ratio(self) -> float:
        """Time in units of the work: 1 where the time is proportional to the work."""
        return self.time / self.work

    def points(self) -> Iterator[tuple[str, str, float, float]]:
        """Time against work, a panel for each batch."""
        yield self.graphs, "proportional", round(self.work, 2), self.work
        yield self.graphs, "EEGNN", round(self.work, 2), self.time


def compare(
    passes: int = 20, data_dir: Path | None = None, compute: Compute = CPU
) -> list[BatchRow]:
    """Measure each batch with each distribution of exits, and without early exits."""
    return [row for name in BATCHES for row in _compare(name, passes, data_dir, compute)]


def batch_of(name: str, data_dir: Path | None = None) -> tuple[bool, Adjacency]:
    """Return whether a batch is the data set's own, and its structure."""
    count, nodes, edges = BATCHES[name]
    real = on_disk(name, data_dir)
    if real:
        graphs = open_dataset(name, 0, data_dir).graphs[:count]
        structures = [Data(edge_index=g.edge_index, num_nodes=g.num_nodes) for g in graphs]
    else:
        structures = [
            Data(edge_index=skewed_graph(nodes, edges, seed, skew=0.2), num_nodes=nodes)
            for seed in range(count)
        ]
    batch = Batch.from_data_list(structures)
    return real, Adjacency.from_edge_index(batch.edge_index, batch.num_nodes, batch.batch, count)


def _compare(name: str, passes: int, data_dir: Path | None, compute: Compute) -> list[BatchRow]:
    real, adj = batch_of(name, data_dir)
    assert adj.batch is not None
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(adj.num_nodes, FEATURES, generator=generator)
    order = torch.randperm(adj.num_graphs, generator=generator)
    exit_layers = {"full": torch.full((adj.num_graphs,), LAYERS)}
    for exits, (low, high) in EXITS.items():
        evenly = torch.linspace(low * LAYERS, high * LAYERS, adj.num_graphs)
        exit_layers[exits] = evenly.round().long().clamp(min=1)[order]
    torch.manual_seed(0)
    device = compute.device
    model = EEGNN(FEATURES, WIDTH, 6, LAYERS, level="graph").to(device)
    predict = partial(predict_with_fixed_exits, model, x.to(device), adj.to(device))
    calls = {exits: partial(predict, layer.to(device)) for exits, layer in exit_layers.items()}
    seconds = medians(calls, passes, compute)
    rows = []
    for exits in EXITS:
        work = float(exit_layers[exits][adj.batch].sum()) / (LAYERS * adj.num_nodes)
        time = seconds[exits] / seconds["full"]
        rows.append(BatchRow(name, real, adj.num_nodes, exits, work, time))
    return rows
