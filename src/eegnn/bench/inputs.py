"""Graphs to measure on, real where they are on disk, else of their size and skew; and exits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor
from torch_geometric.utils import remove_self_loops, to_undirected

from eegnn.data.minesweeper import minesweeper
from eegnn.data.registry import DATASETS, open_dataset
from eegnn.graph import Adjacency
from eegnn.nn.exit_loop import run
from eegnn.nn.exit_model import ExitModel
from eegnn.nn.exits import Exits

#: The heterophilic data sets, and the exit layers that EEGNN learned on them within 21 steps
#: according to tab:node_distributions of the paper: minimum, median and maximum.
PAPER_EXITS: dict[str, tuple[float, float, float]] = {
    "roman-empire": (1.7, 3.3, 10.2),
    "amazon-ratings": (5.1, 13.8, 21.0),
    "minesweeper": (11.4, 15.6, 15.7),
    "tolokers": (1.7, 8.3, 21.0),
    "questions": (1.0, 7.0, 18.8),
}
#: The argument ``skew`` of :func:`skewed_graph` for each data set: the degrees of Tolokers,
#: Questions and Amazon-ratings are skewed, those of Roman-empire (a chain of words) are not.
SKEW = {"roman-empire": 0.2, "amazon-ratings": 0.5, "tolokers": 1.0, "questions": 1.0}


@dataclass(frozen=True)
class BenchmarkGraph:
    """A graph with features ``x``; ``real`` says whether they are the data set's own."""

    name: str
    real: bool
    x: Tensor
    adj: Adjacency
    num_classes: int

    def to(self, device: torch.device) -> BenchmarkGraph:
        """Return a copy on a device."""
        return replace(self, x=self.x.to(device), adj=self.adj.to(device))


def benchmark_graph(name: str, data_dir: Path | None = None) -> BenchmarkGraph:
    """Open a data set of :data:`PAPER_EXITS`, or generate a graph of its size."""
    if name not in PAPER_EXITS:
        raise ValueError(f"dataset must be one of {', '.join(PAPER_EXITS)}, got {name!r}")
    figures = {key: int(value) for key, value in DATASETS[name].figures.items()}
    nodes, real = figures["nodes"], on_disk(name, data_dir)
    if real:
        data = open_dataset(name, 0, data_dir).graphs[0]
        x, edge_index = data.x, data.edge_index
    else:
        x = torch.rand(nodes, figures["features"], generator=torch.Generator().manual_seed(0))
        if name == "minesweeper":
            edge_index = minesweeper().edge_index
        else:
            edge_index = skewed_graph(nodes, figures["edges"] // 2, skew=SKEW[name])
    assert x is not None
    assert edge_index is not None
    adj = Adjacency.from_edge_index(edge_index, nodes)
    return BenchmarkGraph(name, real, x, adj, figures["classes"])


def on_disk(name: str, data_dir: Path | None = None) -> bool:
    """Whether a data set can be opened without the network."""
    return DATASETS[name].place(data_dir) != "needs network"


def skewed_graph(num_nodes: int, num_edges: int, skew: float = 1.0) -> Tensor:
    """Draw about ``num_edges`` undirected edges with skewed degrees; ``[2, 2 · edges]``.

    A ``skew`` of 0 gives even degrees; with 1 the largest is several times the mean.
    """
    generator = torch.Generator().manual_seed(0)
    weight = torch.rand(num_nodes, generator=generator).pow(2 * skew) + 0.02
    ends = torch.multinomial(weight, 2 * num_edges, replacement=True, generator=generator)
    return to_undirected(remove_self_loops(ends.view(2, -1))[0], num_nodes=num_nodes)


def paper_exit_layers(name: str, num_nodes: int, max_layers: int) -> Tensor:
    """Exit layers ``int64 [n]`` with the paper's minimum, median and maximum, in random order.

    Half of the nodes leave evenly between minimum and median, half between median and maximum.
    None leaves after ``max_layers``.
    """
    low, median, high = PAPER_EXITS[name]
    rank = torch.linspace(0, 1, num_nodes)
    early, late = low + (median - low) * 2 * rank, median + (high - median) * (2 * rank - 1)
    layer = torch.where(rank < 0.5, early, late).round().long().clamp(max=max_layers)
    return layer[torch.randperm(num_nodes, generator=torch.Generator().manual_seed(0))]


@torch.no_grad()
def predict_with_fixed_exits(
    model: ExitModel, x: Tensor, adj: Adjacency, fixed_exit_layer: Tensor
) -> tuple[Tensor, Exits]:
    """Predict with the reference loop. The model's heads are computed, and their answer replaced
    by ``fixed_exit_layer``, the exit layer of each unit, ``int64 [U]``, from 1 on.
    """
    program, layer = model.eval().program(adj), 0
    compute, _ = program._heads

    def confidence(h: Tensor, adj: Adjacency) -> Tensor:
        nonlocal layer
        layer += 1
        compute(h, adj)
        return torch.where(fixed_exit_layer > layer, 1.0, -1.0)

    return run(replace(program, confidence=confidence), model.encoder(x), adj)
