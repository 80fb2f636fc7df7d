"""A trained model with its graph, which answers for nodes of it and for new ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from eegnn.data.categories import check_categories, one_hot
from eegnn.data.open import open_problem
from eegnn.data.registry import categories_of
from eegnn.nn.model import GraphModel
from eegnn.serve.batcher import Rows
from eegnn.source import GraphSource, TensorGraph
from eegnn.train.predict import columns_of, open_graph
from eegnn.train.prepare import standardizer
from eegnn.train.run import RunFolder
from eegnn.typing import Task

#: A new node: its features, and the nodes of the graph that it is joined to.
New = tuple[Sequence[float], Sequence[int]]


def open_predictor(
    run: Path, input_path: Path | None = None, root: Path | None = None, **knobs: Any
) -> Predictor:
    """Open a run for nodes, with its own graph or another one.

    Args:
        run: its folder.
        input_path, root: see :func:`eegnn.train.predict.open_graph`.
        knobs: see :class:`Predictor`.
    """
    folder = RunFolder(run)
    model, config = folder.model(), folder.config()
    if model.level != "node":
        raise ValueError(f"{run} must hold a model for nodes, got {model!r}")
    if model.edge_dim is not None:
        raise ValueError(f"{run} holds a model with features of edges, which cannot be served")
    graph = open_graph(model, config, input_path, root)
    source: GraphSource
    if isinstance(graph, GraphSource):
        source = graph
    else:
        x = torch.empty(graph.adj.num_nodes, 0) if graph.x is None else graph.x
        source = TensorGraph(x.to_dense(), graph.adj)
    model.predict(None, source, nodes=[], **knobs)  # refuses now what would be refused later
    if config.encoding != "none":
        return Predictor(model, source, folder.labels(), **knobs)
    categories, _ = categories_of(config.dataset)
    problem = open_problem(config.dataset, config.split, root) if config.standardize else None
    standardized = None if problem is None else standardizer(problem)

    def prepare(x: Tensor) -> Tensor:
        check_categories("x", x, categories)
        return one_hot(x if standardized is None else standardized(x), categories)

    num_features = model.in_channels - sum(categories) + len(categories)
    return Predictor(model, source, folder.labels(), prepare, num_features, **knobs)


class Predictor:
    """Answers as rows of the table that ``eegnn predict`` writes.

    Args:
        model: for nodes.
        source: the graph, with features as the model takes them.
        labels: task and scale, what outputs mean: see :class:`~eegnn.data.problem.Problem`.
        prepare: from features ``[k, d]`` as in the data set to those that the model takes; ``None``
            where that cannot be done for a node alone, and new nodes are refused.
        num_features: the number :math:`d`.
        knobs: of :meth:`~eegnn.nn.model.GraphModel.predict`.
    """

    def __init__(
        self,
        model: GraphModel,
        source: GraphSource,
        labels: tuple[Task, float],
        prepare: Callable[[Tensor], Tensor] | None = None,
        num_features: int = 0,
        **knobs: Any,
    ) -> None:
        self.model, self.source, self.labels = model.eval(), source, labels
        self.prepare, self.num_features, self.knobs = prepare, num_features, knobs

    def check(self, nodes: Sequence[int], new: Sequence[New]) -> None:
        """Refuse nodes that the graph does not have, and new ones with other features.

        Raises:
            ValueError: a sentence for the client.
        """
        neighbors = [node for _, ends in new for node in ends]
        for name, found in (("nodes", nodes), ("neighbors", neighbors)):
            last = max(found, default=-1)
            if last >= self.source.num_nodes:
                raise ValueError(f"{name} must be below {self.source.num_nodes}, got {last}")
        if new and self.prepare is None:
            raise ValueError(
                "new_nodes cannot be answered: the features of this model are made from the whole "
                "graph"
            )
        for x, _ in new:
            if len(x) != self.num_features:
                raise ValueError(f"x must have {self.num_features} numbers, got {len(x)}")

    def predict(self, nodes: Sequence[int]) -> Rows:
        """Return a row for each of these nodes."""
        return self._ask(self.source, nodes, nodes)

    def predict_new(self, new: Sequence[New]) -> Rows:
        """Return a row for each of these new nodes, which are numbered from 0.

        They are in the graph for this call alone, all of them.
        """
        assert self.prepare is not None
        first = self.source.num_nodes
        x = torch.tensor([x for x, _ in new], dtype=torch.float32).view(len(new), -1)
        edges = [(first + row, end) for row, (_, ends) in enumerate(new) for end in ends]
        added = torch.tensor(edges, dtype=torch.int64).view(-1, 2).T
        graph = self.source.with_edges(added, x=self.prepare(x))
        return self._ask(graph, range(first, first + len(new)), range(len(new)))

    def about(self) -> dict[str, Any]:
        """Return what is served, for people and monitors."""
        return {
            "model": repr(self.model),
            "task": self.labels[0],
            "num_nodes": self.source.num_nodes,
            "num_edges": self.source.num_edges,
        }

    def _ask(self, graph: GraphSource, nodes: Sequence[int], names: Sequence[int]) -> Rows:
        out, exits = self.model.predict(None, graph, nodes=torch.tensor(nodes), **self.knobs)
        columns = columns_of(self.labels, names, out, [exits])
        rows = zip(*columns.values(), strict=True)
        return [dict(zip(columns, row, strict=True)) for row in rows]

    def __repr__(self) -> str:
        return f"{self.model!r} on {self.source!r}"
