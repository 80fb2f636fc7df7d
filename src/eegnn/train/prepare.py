"""From a configuration to the problem that the model sees."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor
from torch_geometric.data import Data

from eegnn.data.download import data_root
from eegnn.data.encodings import encode
from eegnn.data.open import open_problem
from eegnn.data.problem import Problem
from eegnn.train.config import Config, parse_encoding


def prepare(config: Config, root: Path | None = None) -> Problem:
    """Open the data set of a configuration and preprocess its features."""
    problem = _encoded(open_problem(config.dataset, config.split, root), config, root)
    if not config.standardize:
        return problem
    return replace(problem, graphs=standardize(problem.graphs, problem))


def prepare_unseen(
    graphs: Sequence[Data], config: Config, root: Path | None = None
) -> Sequence[Data]:
    """Preprocess graphs that are not part of a run's data set as the run did its own."""
    if config.encoding == "none" and not config.standardize:
        return graphs
    own = open_problem(config.dataset, config.split, root)
    index = torch.arange(len(graphs))
    unseen = replace(own, graphs=graphs, inductive=True, train=index, val=index, test=index)
    graphs = _encoded(unseen, config, root).graphs
    return standardize(graphs, _encoded(own, config, root)) if config.standardize else graphs


def standardize(graphs: Sequence[Data], problem: Problem) -> Sequence[Data]:
    """Shift and scale the features of graphs, see :func:`standardizer`."""
    x = problem.graphs[0].x
    if x is None or x.size(1) == len(problem.node_categories):
        return graphs
    apply = standardizer(problem)
    found = [graph.clone() for graph in graphs]
    for graph in found:
        graph.x = apply(graph.x)
    return found


def standardizer(problem: Problem) -> Callable[[Tensor], Tensor]:
    """Return what shifts and scales features by the mean and variance of a problem's features.

    Mean and variance are those of the nodes that training sees: all nodes of a single graph, those
    of the training graphs otherwise. A feature that does not vary becomes 0. Categories are left
    as they are.
    """
    first = len(problem.node_categories)
    training = problem.train.tolist() if problem.inductive else [0]
    x = torch.cat([problem.graphs[i].x[:, first:] for i in training])
    mean, std = x.mean(dim=0), x.std(dim=0, correction=0)
    scale = torch.where(std > 0, 1 / std.clamp(min=1e-12), 0.0)
    return lambda x: torch.cat([x[:, :first], (x[:, first:] - mean) * scale], dim=1)


def _encoded(problem: Problem, config: Config, root: Path | None) -> Problem:
    kind, columns = parse_encoding(config.encoding)
    return problem if kind == "none" else encode(problem, kind, columns, data_root(root))
