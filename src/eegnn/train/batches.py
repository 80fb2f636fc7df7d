"""From a problem to what the loop iterates over."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from eegnn.data.problem import Problem
from eegnn.graph import Adjacency


@dataclass(frozen=True)
class Units:
    """Graphs as one, and the units among them that count.

    Attributes:
        x: ``[n, in_channels]`` or ``None``.
        adj: the graph, or the graphs side by side.
        edge_attr: edge features or ``None``.
        y: labels of all units; ``None`` where there are none to learn from.
        index: which units count, ``None`` for all.
    """

    x: Tensor | None
    adj: Adjacency
    edge_attr: Tensor | None
    y: Tensor | None
    index: Tensor | None = None

    @property
    def labels(self) -> Tensor:
        """Labels of the units that count."""
        assert self.y is not None
        return self.y if self.index is None else self.y[self.index]

    def of(self, out: Tensor) -> Tensor:
        """Outputs of the units that count."""
        return out if self.index is None else out[self.index]


class Batches:
    """The parts of a problem, batched.

    A single graph is always taken whole: the parts then differ in the nodes that count. With many
    graphs, training takes them in a new random order each epoch.

    Args:
        problem: what to train on.
        batch_size: graphs a batch.
        with_edges: whether the model takes edge features.
    """

    def __init__(self, problem: Problem, batch_size: int, with_edges: bool = True) -> None:
        self.problem = problem
        self.batch_size = batch_size
        self.with_edges = with_edges
        self._fixed: dict[str, list[Units]] = {}
        self._whole = None if problem.inductive else gather(problem.graphs, with_edges)

    def training(self, generator: torch.Generator) -> Iterator[Units]:
        """The training part, for one epoch."""
        if self._whole is not None:
            yield from self.part("train")
            return
        order = self.problem.train[torch.randperm(self.problem.train.numel(), generator=generator)]
        for index in order.split(self.batch_size):
            yield self._batch(index)

    def part(self, name: str) -> list[Units]:
        """``"train"``, ``"val"`` or ``"test"`` in a fixed order, made once."""
        if name not in self._fixed:
            index: Tensor = getattr(self.problem, name)
            if self._whole is not None:
                w = self._whole
                self._fixed[name] = [Units(w.x, w.adj, w.edge_attr, w.y, index)]
            else:
                self._fixed[name] = [self._batch(i) for i in index.split(self.batch_size)]
        return self._fixed[name]

    def whole(self) -> Units | None:
        """The one graph with all its nodes, where there is just one."""
        return self._whole

    def _batch(self, index: Tensor) -> Units:
        graphs = [self.problem.graphs[i] for i in index.tolist()]
        return gather(graphs, self.with_edges)


def gather(graphs: Sequence[Data], with_edges: bool) -> Units:
    """Put graphs side by side, with or without their edge features."""
    if len(graphs) == 1:  # as it is: a large graph is not copied
        data, batch = graphs[0], None
    else:
        data = Batch.from_data_list(list(graphs))
        batch = data.batch
    adj = Adjacency.from_edge_index(data.edge_index, data.num_nodes, batch, num_graphs=len(graphs))
    return Units(data.x, adj, data.edge_attr if with_edges else None, data.y)
