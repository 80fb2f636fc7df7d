"""Memory of a training step with the recipes of the paper's data sets, counted tensor by tensor."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch_geometric.data import Data

from eegnn.bench.rows import BenchmarkRow
from eegnn.data.dataset import DataSet
from eegnn.data.problem import Problem
from eegnn.data.registry import find
from eegnn.train.config import Config, parse_encoding
from eegnn.train.loop import Trainer
from eegnn.train.run import RunFolder
from eegnn.train.start import configure

MODELS = {"SAS-GNN": "sasgnn", "EEGNN": "eegnn"}
#: Columns of ``edge_index`` where the paper counts something else: citations in both directions.
EDGES = {"ogbn-arxiv": 2_315_598}
#: Columns of ``edge_attr`` where there are numbers.
EDGE_NUMBERS = {"pascalvoc-sp": 2}


@dataclass(frozen=True)
class FootprintRow(BenchmarkRow):
    """A data set and a model; bytes as (plain, recompute)."""

    title = "Memory of a training step, bytes, plain → recompute"
    columns = ("dataset", "model", "width", "layers", "graphs", "nodes", "edges", "data", "peak")
    x_label, y_label, log_axes = "nodes", "peak, GB", True

    dataset: str
    model: str
    width: int
    layers: int
    graphs: int  #: in a batch
    nodes: int
    edges: int  #: in both directions
    data: int  #: bytes of the batch
    peak: tuple[int, int]  #: bytes of all tensors at the moment when there are most

    def points(self) -> Iterator[tuple[str, str, float, float]]:
        """The peak against nodes, a panel for each model."""
        for line, value in zip(("plain", "recompute"), self.peak, strict=True):
            yield self.model, line, self.nodes, value / 1e9


class LiveBytes(TorchDispatchMode):
    """Counts the bytes of all tensors that operations in its context have met and that still exist.

    What a kernel uses inside is not seen.
    """

    def __init__(self) -> None:
        super().__init__()
        self.now = self.peak = 0
        self._known: set[int] = set()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        out = func(*args, **(kwargs or {}))
        self.add(args, kwargs, out)
        return out

    def add(self, *values: Any) -> None:
        """Count the tensors among these values, until they are freed."""
        for value in tree_leaves(values):
            if isinstance(value, Tensor) and value.layout == torch.strided:
                self._add_storage(value.untyped_storage())

    def _add_storage(self, storage: torch.UntypedStorage) -> None:
        key = storage._cdata
        if key not in self._known:
            self._known.add(key)
            self.now += storage.nbytes()
            self.peak = max(self.peak, self.now)
            weakref.finalize(storage, self._remove, key, storage.nbytes())

    def _remove(self, key: int, size: int) -> None:
        self._known.discard(key)
        self.now -= size


def compare(datasets: Sequence[str]) -> list[FootprintRow]:
    """Count a training step of each of :data:`MODELS` with its recipe for these data sets.

    Graphs are generated with the published numbers of nodes, edges, features and classes; where
    there are many, a batch has so many of average size.
    """
    return [_count(dataset, model) for dataset in datasets for model in MODELS]


def _count(dataset: str, model: str) -> FootprintRow:
    config = configure(dataset, MODELS[model], None, {})
    problem = stand_in(config)
    peaks = []
    for recompute in (False, True):
        options = {**config.options, "recompute": recompute}
        peak, data = step_bytes(config.model_copy(update={"options": options}), problem)
        peaks.append(peak)
    nodes = sum(int(graph.num_nodes or 0) for graph in problem.graphs)
    edges = sum(graph.num_edges for graph in problem.graphs)
    sizes = (len(problem.graphs), nodes, edges)
    settings = (config.hidden_channels, config.num_layers)
    return FootprintRow(dataset, model, *settings, *sizes, data, (peaks[0], peaks[1]))


def step_bytes(config: Config, problem: Problem) -> tuple[int, int]:
    """Return the bytes at the peak of a training step on all graphs of a problem, and of the data.

    They are those of the batch, the weights, their gradients and momenta, and all that autograd and
    the optimiser make on the way. It is the second step: the first makes the momenta.
    """
    trainer = Trainer(config, problem, RunFolder(Path()))
    batch = trainer.batches.load(torch.arange(len(problem.graphs)))
    trainer.model.train()
    with LiveBytes() as live:
        live.add(vars(batch), vars(batch.adj))
        data = live.now
        live.add(trainer.model.state_dict())
        for _ in range(2):
            trainer._step(batch)
    return live.peak, data


def stand_in(config: Config) -> Problem:
    """Return a problem of the size of a data set, or of a batch of its average graphs."""
    entry = find(config.dataset)
    inductive = "graphs" in entry.figures
    nodes, edges = _size(entry)
    features = int(entry.figures["features"]) + parse_encoding(config.encoding)[1]
    graph = Data(
        x=torch.zeros(nodes, features),
        edge_index=circulant_graph(nodes, edges // 2),
        y=_labels(entry, nodes),
    )
    edge_columns = len(entry.edge_categories) or EDGE_NUMBERS.get(entry.name)
    if edge_columns:
        graph.edge_attr = torch.zeros(graph.num_edges, edge_columns)
    count = config.batch_size if inductive else 1
    part = torch.arange(count if inductive else nodes)
    return Problem(
        entry.name,
        [graph] * count,
        entry.level,
        entry.task,
        entry.metric,
        int(entry.figures["classes"]),
        *(part, part, part),
        inductive=inductive,
        node_categories=entry.node_categories,
        edge_categories=entry.edge_categories,
    )


def _size(entry: DataSet) -> tuple[int, int]:
    """Nodes and columns of ``edge_index``, on average where there are many graphs."""
    figures = {**entry.figures, **({"edges": EDGES[entry.name]} if entry.name in EDGES else {})}
    prefix = "mean_" if "mean_nodes" in figures else ""
    nodes, edges = figures[f"{prefix}nodes"], figures.get(f"{prefix}edges")
    if edges is None:
        edges = 2 * figures[f"{prefix}undirected_edges"]
    count = 1 if prefix else figures.get("graphs", 1)
    return round(nodes / count), round(edges / count)


def _labels(entry: DataSet, nodes: int) -> Tensor:
    units, classes = nodes if entry.level == "node" else 1, int(entry.figures["classes"])
    if entry.task == "classification":
        return torch.arange(units) % classes
    return torch.zeros(units, classes)


def circulant_graph(num_nodes: int, num_edges: int) -> Tensor:
    """Join each node with the next ones on a ring; ``[2, 2 · num_edges]``, exactly so many."""
    edge = torch.arange(num_edges)
    source = edge % num_nodes
    target = (source + 1 + edge // num_nodes) % num_nodes
    return torch.stack([torch.cat([source, target]), torch.cat([target, source])])
