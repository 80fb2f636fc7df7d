"""From a configuration to the problem that the model sees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch
from torch_geometric.data import Data

from eegnn.data.encodings import encode
from eegnn.data.mirror import data_root
from eegnn.data.open import open_problem
from eegnn.data.problem import Problem
from eegnn.train.config import Config, parse_encoding


def prepare(config: Config, root: Path | None = None) -> Problem:
    """Open the data set of a configuration and treat its features as it says.

    Args:
        config: names the data set, the split, and what to do with the features.
        root: the data folder; ``None`` for the default.
    """
    problem = _encoded(open_problem(config.dataset, config.split, root), config, root)
    return standardized(problem) if config.standardize else problem


def prepare_others(
    graphs: Sequence[Data], config: Config, root: Path | None = None
) -> Sequence[Data]:
    """Treat graphs that a run has not seen as it treated its own."""
    if config.encoding == "none" and not config.standardize:
        return graphs
    own = open_problem(config.dataset, config.split, root)
    everyone = torch.arange(len(graphs))
    others = replace(
        own, graphs=graphs, inductive=True, train=everyone, val=everyone, test=everyone
    )
    others = _encoded(others, config, root)
    if not config.standardize:
        return others.graphs
    return _treated(others.graphs, _encoded(own, config, root))


def standardized(problem: Problem) -> Problem:
    """Shift and scale each feature to mean 0 and variance 1.

    The figures are those of the nodes that training sees: all nodes of a single graph, the
    training graphs otherwise. A feature that does not vary becomes 0. Categories stay as they are.
    """
    graphs = _treated(problem.graphs, problem)
    return problem if graphs is problem.graphs else replace(problem, graphs=graphs)


def _encoded(problem: Problem, config: Config, root: Path | None) -> Problem:
    kind, columns = parse_encoding(config.encoding)
    return problem if kind == "none" else encode(problem, kind, columns, data_root(root))


def _treated(graphs: Sequence[Data], problem: Problem) -> Sequence[Data]:
    """Graphs with their numbers shifted and scaled by the figures of a problem."""
    numbers = slice(len(problem.node_categories), None)
    if problem.graphs[0].x is None or problem.graphs[0].x[:, numbers].size(1) == 0:
        return graphs
    seen = problem.train.tolist() if problem.inductive else [0]
    x = torch.cat([problem.graphs[i].x[:, numbers] for i in seen])
    mean, std = x.mean(dim=0), x.std(dim=0, correction=0)
    scale = torch.where(std > 0, 1 / std.clamp(min=1e-12), 0.0)

    def treat(graph: Data) -> Data:
        graph = graph.clone()
        graph.x[:, numbers] = (graph.x[:, numbers] - mean) * scale
        return graph

    return [treat(graph) for graph in graphs]
