"""The graphs that are measured on: real where they are on disk, else of the same size and skew."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from torch_geometric.utils import remove_self_loops, to_undirected

from eegnn.data.minesweeper import minesweeper
from eegnn.data.mirror import data_root, in_mirror
from eegnn.data.registry import DATASETS, open_dataset
from eegnn.graph import Adjacency

#: The heterophilic data sets, and the exits that EEGNN learned on them within 21 steps according
#: to tab:node_distributions: minimum, median and maximum.
PAPER_EXITS: dict[str, tuple[float, float, float]] = {
    "roman-empire": (1.7, 3.3, 10.2),
    "amazon-ratings": (5.1, 13.8, 21.0),
    "minesweeper": (11.4, 15.6, 15.7),
    "tolokers": (1.7, 8.3, 21.0),
    "questions": (1.0, 7.0, 18.8),
}
#: Exponent of the power law of the weights of nodes in :func:`skewed_graph`. The degrees of
#: Tolokers, Questions and Amazon-ratings are skewed, those of Roman-empire (a chain with
#: dependencies) are not.
SKEW = {"roman-empire": 0.2, "amazon-ratings": 0.5, "tolokers": 1.0, "questions": 1.0}


@dataclass(frozen=True)
class Shape:
    """A graph with features ``x``; ``real`` says whether they are the data set's own."""

    name: str
    real: bool
    x: Tensor
    adj: Adjacency
    classes: int

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return self.adj.num_nodes

    @property
    def edges(self) -> int:
        """Number of directed edges."""
        return self.adj.num_edges


def shape(name: str, data_dir: Path | None = None) -> Shape:
    """Open a heterophilic data set if it is on disk, else draw a graph of its size.

    Args:
        name: one of :data:`PAPER_EXITS`.
        data_dir: the data folder; ``None`` for the default.
    """
    if name not in PAPER_EXITS:
        raise ValueError(f"dataset must be one of {', '.join(PAPER_EXITS)}, got {name!r}")
    figures = DATASETS[name].figures
    nodes, classes = int(figures["nodes"]), int(figures["classes"])
    if on_disk(name, data_dir):
        data = open_dataset(name, 0, data_dir).graphs[0]
        assert data.x is not None
        assert data.edge_index is not None
        return Shape(name, True, data.x, Adjacency.from_edge_index(data.edge_index, nodes), classes)
    if name == "minesweeper":
        edge_index = minesweeper().edge_index
    else:
        edge_index = skewed_graph(nodes, int(figures["edges"]) // 2, skew=SKEW[name])
    x = torch.rand(nodes, int(figures["features"]), generator=torch.Generator().manual_seed(0))
    return Shape(name, False, x, Adjacency.from_edge_index(edge_index, nodes), classes)


def on_disk(name: str, data_dir: Path | None = None) -> bool:
    """Whether a data set can be opened without the network."""
    home = DATASETS[name].home
    return (data_root(data_dir) / home).is_dir() or in_mirror(f"{home}/raw")


def skewed_graph(num_nodes: int, num_edges: int, seed: int = 0, skew: float = 1.0) -> Tensor:
    """Draw about ``num_edges`` undirected edges with skewed degrees; ``[2, 2 · edges]``.

    Args:
        num_nodes, num_edges: the size.
        seed: of the generator.
        skew: 0 for even degrees; with 1 the largest is several times the mean.
    """
    generator = torch.Generator().manual_seed(seed)
    weight = torch.rand(num_nodes, generator=generator).pow(2 * skew) + 0.02
    ends = torch.multinomial(weight, 2 * num_edges, replacement=True, generator=generator)
    return to_undirected(remove_self_loops(ends.view(2, -1))[0], num_nodes=num_nodes)


def stated_exits(name: str, num_nodes: int, limit: int) -> Tensor:
    """Exit layers ``int64 [n]`` with the paper's minimum, median and maximum, none above ``limit``.

    Half of the nodes leave evenly between minimum and median, half between median and maximum;
    who does is drawn.
    """
    low, middle, high = PAPER_EXITS[name]
    rank = torch.linspace(0, 1, num_nodes)
    layer = torch.where(
        rank < 0.5,
        low + (middle - low) * 2 * rank,
        middle + (high - middle) * (2 * rank - 1),
    )
    order = torch.randperm(num_nodes, generator=torch.Generator().manual_seed(0))
    return layer.round().long().clamp(max=limit)[order]
