"""Links of a graph to predict: which are hidden, and pairs that are none."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.transforms import RandomLinkSplit
from torch_geometric.utils import (
    batched_negative_sampling,
    negative_sampling,
    remove_self_loops,
    to_undirected,
)

from eegnn.data.arrays import NamedArrays
from eegnn.data.labels import Labels, labels_from_arrays
from eegnn.data.problem import Metric, Problem, joined
from eegnn.data.splits import split_from_arrays
from eegnn.graph import Adjacency
from eegnn.typing import Task

#: Shares of the links that validation and test predict.
VAL, TEST = 0.05, 0.1
#: A step of training predicts this share of its links, which carry no messages in it, but never
#: more than so many, for memory: every layer keeps the states of all pairs for the gradients.
SUPERVISED, MOST_LINKS = 0.3, 2**14


def link_problem(name: str, data: Data, seed: int, notes: Mapping[str, str]) -> Problem:
    """Let links of a graph be predicted, as PyG's ``RandomLinkSplit`` splits them.

    A graph of its own for each part. In validation and test messages run over the links of
    training, and of training and validation, never over those that are predicted; there are as many
    pairs without a link. In training both are drawn anew for each step, see :func:`draw_links`.

    Args:
        name: what messages call it.
        data: the graph; only ``x`` and ``edge_index`` count.
        seed: of the split.
        notes: as in :class:`~eegnn.data.problem.Problem`.
    """
    edge_index = to_undirected(remove_self_loops(data.edge_index)[0], num_nodes=data.num_nodes)
    split = RandomLinkSplit(VAL, TEST, is_undirected=True, add_negative_train_samples=False)
    with seeded(seed):
        parts = split(Data(x=data.x, edge_index=edge_index))
    note = f"{1 - VAL - TEST:.0%}/{VAL:.0%}/{TEST:.0%} of links, seed {seed}"
    return problem_from_link_split(name, parts, {**notes, "split": note})


def problem_from_link_split(
    name: str, parts: Sequence[Data], notes: Mapping[str, str] | None = None
) -> Problem:
    """Make a problem of what PyG's ``RandomLinkSplit`` returns.

    Args:
        name: what messages call it.
        parts: training, validation and test, each with ``edge_label_index`` and ``edge_label`` of
            0 and 1. Where training has ones alone (``add_negative_train_samples=False``), pairs
            without a link are drawn anew for each step.
        notes: as in :class:`~eegnn.data.problem.Problem`.
    """
    labels = [part.edge_label.float().unsqueeze(-1) for part in parts]
    given = Labels(torch.cat(labels), "edge", "multilabel", "roc_auc", 1)
    graphs = [
        _with_pairs(part, part.edge_label_index, y) for part, y in zip(parts, labels, strict=True)
    ]
    return _problem(name, graphs, given, dict(notes or {}))


def problem_from_pairs(
    name: str,
    arrays: NamedArrays,
    graph: Data,
    split: int,
    task: Task | None,
    metric: Metric | None,
) -> Problem:
    """Make a problem of one's own graph and pairs; messages run over ``graph`` in every part.

    Args:
        name: what messages call it.
        arrays: with ``edge_label_index``, ``edge_label``, and perhaps masks or indices of pairs.
            Labels of floating-point 0 and 1 tell whether there is a link; integers are classes.
        graph: the graph.
        split, task, metric: as in :func:`eegnn.data.files.read_problem`.
    """
    pairs, y = arrays.integers("edge_label_index", ndim=2), arrays["edge_label"]
    if len(pairs) != 2 or pairs.shape[1:] != y.shape[:1]:
        raise ValueError(
            f"{arrays.source}: edge_label_index must have shape [2, P] for the P = {len(y)} rows "
            f"of edge_label, got {list(pairs.shape)}"
        )
    arrays.check_range("edge_label_index", pairs, int(graph.num_nodes or 0), "rows of x")
    if task is None and y.dtype.kind == "f" and y.ndim == 1 and np.isin(y, (0, 1)).all():
        task, metric = "multilabel", metric or "roc_auc"
    counts = {key: arrays[key] for key in ("num_classes",) if key in arrays}
    named = NamedArrays(f"{arrays.source}: edge_label", {**counts, "x": y, "y": y})
    labels = labels_from_arrays(named, None, "node", task, metric)._replace(level="edge")
    found = split_from_arrays(arrays, len(y), split)
    index = torch.from_numpy(pairs)
    parts = [found.train, found.val, found.test]
    graphs = [_with_pairs(graph, index[:, part], labels.y[part]) for part in parts]
    notes = {"source": arrays.source, "split": found.note, "features": "as given"}
    return _problem(name, graphs, labels, notes)


def _with_pairs(graph: Data, pairs: Tensor, y: Tensor) -> Data:
    found = Data(x=graph.x, edge_index=graph.edge_index, edge_label_index=pairs, y=y)
    if graph.edge_attr is not None:
        found.edge_attr = graph.edge_attr
    return found


def _problem(name: str, graphs: list[Data], labels: Labels, notes: dict[str, str]) -> Problem:
    """Make a problem with a graph of its own for each part."""
    train, val, test = torch.arange(3).split(1)
    return Problem(
        name=name,
        graphs=graphs,
        level="edge",
        task=labels.task,
        metric=labels.metric,
        out_channels=labels.out_channels,
        train=train,
        val=val,
        test=test,
        inductive=True,
        notes=notes,
    )


def draw_negatives(adj: Adjacency, count: int, seed: int) -> Tensor:
    """Draw pairs of a graph's nodes that neither its edges nor ``adj.pairs`` join.

    Args:
        adj: the graph, or a batch of graphs, with pairs.
        count: how many; of a batch, about as many.
        seed: the same seed gives the same pairs.

    Returns:
        ``int64 [2, ·]``, fewer than ``count`` where the graph is dense.
    """
    assert adj.pairs is not None
    known = torch.cat([adj.edge_index, adj.pairs, adj.pairs.flip(0)], dim=1).cpu()
    with seeded(seed):
        if adj.batch is None:
            found = negative_sampling(known, adj.num_nodes, count)
        else:
            found = batched_negative_sampling(known, adj.batch.cpu(), count / known.size(1))
    return found[:, found[0] != found[1]].to(adj.device)


def draw_links(adj: Adjacency, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Draw what a step of training predicts, and what it may know.

    Args:
        adj: the graph with its links as ``adj.pairs``.
        generator: of random numbers, on the CPU.

    Returns:
        A share of the links and about as many pairs without one, ``[2, P]``; their labels of 1 and
        0, ``[P, 1]``; and ``bool [E]``, which columns of the original ``edge_index`` are none of
        these links.
    """
    assert adj.pairs is not None
    count = min(max(1, round(SUPERVISED * adj.pairs.size(1))), MOST_LINKS)
    order = torch.randperm(adj.pairs.size(1), generator=generator)[:count]
    links = adj.pairs[:, order.to(adj.device)]
    seed = int(torch.randint(2**31, (), generator=generator))
    pairs = torch.cat([links, draw_negatives(adj, count, seed)], dim=1)
    label = torch.zeros(pairs.size(1), 1, device=adj.device)
    label[:count] = 1
    return pairs, label, ~joined(adj.edge_columns, links, adj.num_nodes)


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Let PyG draw from this seed, and afterwards go on with the numbers that were to come."""
    state = random.getstate()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        random.seed(seed)
        try:
            yield
        finally:
            random.setstate(state)
