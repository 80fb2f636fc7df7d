"""ECHO's synthetic tasks (Miglior et al., 2026): distances that take up to 40 hops to find."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from eegnn import _check
from eegnn.data.arrays import Arrays, cached
from eegnn.data.problem import Problem
from eegnn.data.topologies import TOPOLOGIES, distances

EchoTask = Literal["sssp", "ecc", "diam"]

DIAMETERS = range(17, 41)
GRAPHS = 70  # for each topology and diameter: 6 · 24 · 70 = 10,080
SCALE = 40.0  # the largest target
BLOCK = 10  # of ten graphs one is for validation, one for testing
VERSION = 1  # to be raised when the same seed gives other graphs


def echo(task: EchoTask, size: float = 1.0, seed: int = 0, root: Path | None = None) -> Problem:
    """Generate one of ECHO's three tasks on graphs of six topologies and diameters 17 … 40.

    ``"sssp"``: for each node the number of hops to the source; ``"ecc"``: for each node the number
    of hops to the farthest node; ``"diam"``: for each graph the largest of these. Targets are
    exact, divided by 40. A node has two features: a number drawn from U(0, 1), and 1 for the
    source, 0 for others. The graphs of one size and seed are the same, source included, for all
    three tasks, as in the benchmark's files, where one file holds the three targets.

    Graphs are ordered by topology, then by diameter. In every ten consecutive ones, eight chosen
    at random are for training and one each for validation and test, so each part has its share of
    every topology and diameter (56, 7 and 7 of 70). The benchmark's own proportions are not
    published with it; these are ours.

    Args:
        task: which target.
        size: the share of the 70 graphs of each topology and diameter, at least one. The graphs
            of a smaller size are among those of a larger one.
        seed: the same seed gives the same graphs.
        root: where to keep generated graphs (tens of megabytes at full size); ``None``: nowhere.

    Returns:
        A problem with ``x [n, 2]`` and ``y [n, 1]`` (``"diam"``: ``[1, 1]``).
    """
    _check.choice("task", task, get_args(EchoTask))
    count = max(1, round(GRAPHS * _check.number("size", size, 0.0, 1.0)))
    _check.integer("seed", seed, at_least=0)
    parameters = {"graphs": count, "seed": seed, "version": VERSION}
    arrays = cached(root, "echo", parameters, lambda: _generate(count, seed))
    train, val, test = _split(len(arrays["nodes"]), seed)
    return Problem(
        name=f"echo-{task}",
        graphs=_graphs(arrays, task),
        level="graph" if task == "diam" else "node",
        task="regression",
        metric="mae",
        out_channels=1,
        train=train,
        val=val,
        test=test,
        inductive=True,
        scale=SCALE,
        notes={
            "source": f"generated, version {VERSION}, seed {seed}, {count} graphs per topology "
            f"and diameter",
            "split": "80/10/10, one each of ten consecutive graphs for validation and test",
            "features": "U(0, 1) and a flag for the source",
        },
    )


def _generate(count: int, seed: int) -> Arrays:
    """Return all graphs, one after the other; ``nodes`` and ``edges`` hold the size of each."""
    columns: dict[str, list[NDArray[Any]]] = {"x": [], "edge_index": [], "ecc": [], "sssp": []}
    topologies = enumerate(TOPOLOGIES.values())
    for (index, draw), diameter, repetition in product(topologies, DIAMETERS, range(count)):
        # A generator for each graph: smaller sizes are parts of larger ones.
        generator = np.random.default_rng([seed, index, diameter, repetition])
        for name, array in _graph(generator, draw(generator, diameter)).items():
            columns[name].append(array)
    return {
        "nodes": np.array([len(x) for x in columns["x"]]),
        "edges": np.array([edges.shape[1] for edges in columns["edge_index"]]),
        "edge_index": np.concatenate(columns.pop("edge_index"), axis=1),
        **{name: np.concatenate(parts) for name, parts in columns.items()},
    }


def _graph(generator: np.random.Generator, edges: NDArray[np.int64]) -> Arrays:
    hops = distances(edges)
    n = len(hops)
    source = int(generator.integers(n))
    x = np.zeros((n, 2), dtype=np.float32)
    x[:, 0] = generator.random(n, dtype=np.float32)
    x[source, 1] = 1
    return {
        "x": x,
        "edge_index": np.concatenate([edges, edges[::-1]], axis=1).astype(np.int32),
        "ecc": hops.max(axis=1).astype(np.int16),
        "sssp": hops[source].astype(np.int16),
    }


def _graphs(arrays: Arrays, task: EchoTask) -> list[Data]:
    nodes, edges = arrays["nodes"].tolist(), arrays["edges"].tolist()
    target = torch.from_numpy(arrays["sssp" if task == "sssp" else "ecc"]).float().view(-1, 1)
    parts = zip(
        torch.from_numpy(arrays["x"]).split(nodes),
        torch.from_numpy(arrays["edge_index"]).long().split(edges, dim=1),
        (target / SCALE).split(nodes),
        strict=True,
    )
    return [
        Data(x=x, edge_index=edge_index, y=y.max().view(1, 1) if task == "diam" else y)
        for x, edge_index, y in parts
    ]


def _split(total: int, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    place = torch.cat([torch.randperm(BLOCK, generator=generator) for _ in range(0, total, BLOCK)])
    place = place[:total]
    val, test = (torch.nonzero(place == part).view(-1) for part in (0, 1))
    return torch.nonzero(place > 1).view(-1), val, test
