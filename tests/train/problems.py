"""Small problems built by hand, and the runs that are trained on them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from eegnn.data.problem import Metric, Problem
from eegnn.nn.eegnn import EEGNN
from eegnn.nn.model import GraphModel
from eegnn.train.config import Config, make_config
from eegnn.train.loop import Trainer
from eegnn.train.run import RunFolder
from tests.graphs import both_ways

SMALL: dict[str, Any] = {"dataset": "by-hand", "hidden_channels": 8, "num_layers": 4, "epochs": 5}
#: Dropout, beside the noise of the exits: every random number matters.
NOISY: dict[str, Any] = {"options": {"dropout": 0.3}}
#: By problem, a preference for continue with which :func:`undecided` lets units leave one by one.
PREFERENCE = {"ring": 4.0, "rings": 3.0, "means": 2.0}
#: Of the atoms of `molecule_problem`.
KINDS = (5, 2)


def ring(n: int, chords: int = 0, seed: int = 0) -> Tensor:
    """A cycle with some random chords, both directions."""
    rng = np.random.default_rng(seed)
    pairs = {(i, i + 1) for i in range(n - 1)} | {(0, n - 1)}
    while len(pairs) < n + chords:
        u, v = sorted(int(node) for node in rng.choice(n, size=2, replace=False))
        pairs.add((u, v))
    return both_ways(sorted(pairs))


def node_problem(
    n: int = 40, metric: Metric = "roc_auc", edge_dim: int | None = None, seed: int = 0
) -> Problem:
    """Nodes of one ring; the class of a node is decided by its neighbours."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 3, generator=generator)
    y = (x[:, 0].roll(1) + x[:, 0].roll(-1) + 0.1 * x[:, 1] > 0).long()
    graph = Data(x=x, edge_index=ring(n), y=y)
    if edge_dim is not None:
        graph.edge_attr = torch.randn(graph.num_edges, edge_dim, generator=generator)
    order = torch.randperm(n, generator=generator)
    train, val, test = order[: n // 2], order[n // 2 : 3 * n // 4], order[3 * n // 4 :]
    return Problem(
        "ring", [graph], "node", "classification", metric, 2, train, val, test, inductive=False
    )


def graph_problem(count: int = 24, metric: Metric = "accuracy", seed: int = 0) -> Problem:
    """Rings of several lengths; the class of a graph is whether the mean of a feature is high."""
    generator = torch.Generator().manual_seed(seed)
    graphs = []
    for i in range(count):
        n = 3 + i % 5
        x = torch.randn(n, 2, generator=generator)
        graphs.append(Data(x=x, edge_index=ring(n), y=(x[:, :1].mean(dim=0) > 0).long()))
    order = torch.randperm(count, generator=generator)
    train, val, test = order[: count // 2], order[count // 2 : -6], order[-6:]
    return Problem(
        "rings", graphs, "graph", "classification", metric, 2, train, val, test, inductive=True
    )


def regression_problem(count: int = 12, scale: float = 10.0, seed: int = 0) -> Problem:
    """A number for each node of several rings: the mean of its neighbours' feature."""
    generator = torch.Generator().manual_seed(seed)
    graphs = []
    for i in range(count):
        n = 4 + i % 3
        x = torch.rand(n, 1, generator=generator)
        y = (x.roll(1, dims=0) + x.roll(-1, dims=0)) / 2
        graphs.append(Data(x=x, edge_index=ring(n), y=y))
    train, val, test = torch.arange(count).split([count - 6, 3, 3])
    return Problem("means", graphs, "node", "regression", "mae", 1, train, val, test, True, scale)


def molecule_problem(count: int = 24, seed: int = 0) -> Problem:
    """Rings of atoms and bonds of several kinds; is there an atom of kind 0 in it?"""
    generator = torch.Generator().manual_seed(seed)
    graphs = []
    for i in range(count):
        edge_index = ring(3 + i % 5)
        n, e = 3 + i % 5, edge_index.size(1)
        x = torch.stack([torch.randint(size, (n,), generator=generator) for size in KINDS], dim=1)
        bonds = torch.randint(3, (e, 1), generator=generator)
        y = (x[:, :1] == 0).any(dim=0).long()
        graphs.append(Data(x=x, edge_index=edge_index, edge_attr=bonds, y=y))
    train, val, test = torch.arange(count).split([count - 12, 6, 6])
    return Problem(
        "molecules",
        graphs,
        "graph",
        "classification",
        "accuracy",
        2,
        train,
        val,
        test,
        inductive=True,
        node_categories=KINDS,
        edge_categories=(3,),
    )


def small_config(**settings: Any) -> Config:
    return make_config(SMALL, settings)


def new_run(path: Path, problem: Problem, **settings: Any) -> Trainer:
    """A trainer at the start of a new run."""
    config = small_config(**settings)
    trainer = Trainer(config, problem, RunFolder(path))
    trainer.folder.start(config, problem.task, problem.scale)
    return trainer


def undecided(model: GraphModel, problem: Problem) -> GraphModel:
    """Let units leave at different layers: the larger their states grow, the earlier."""
    assert isinstance(model, EEGNN)
    last = model.loop.confidence.head.lins[-1]  # type: ignore[attr-defined]
    signs = torch.tensor([1.0, -1.0])
    with torch.no_grad():
        last.weight.copy_(-signs.unsqueeze(1).expand_as(last.weight))
        last.bias.copy_(PREFERENCE[problem.name] * signs)
    return model


def resumed_run(path: Path, problem: Problem) -> Trainer:
    """A trainer that knows nothing but what is on disk."""
    folder = RunFolder(path)
    trainer = Trainer(folder.config(), problem, folder)
    trainer.resume()
    return trainer


class Killed(BaseException):
    """Stands for the end of the process."""


def killed_after(epochs: int) -> Callable[[dict[str, Any]], None]:
    def on_epoch(line: dict[str, Any]) -> None:
        if line["epoch"] == epochs:
            raise Killed

    return on_epoch


def timeless(record: dict[str, Any]) -> dict[str, Any]:
    """A record without what the clock says."""
    return {key: value for key, value in record.items() if key != "seconds"}


def outcome(path: Path) -> dict[str, Any]:
    """All that a finished run left behind, in a form that compares bit for bit."""
    folder = RunFolder(path)
    state, summary = folder.state(), folder.summary()
    assert state is not None
    assert summary is not None
    with np.load(path / "exits.npz") as exits:
        left = {name: exits[name].tobytes() for name in exits.files}
    del state["progress"]["seconds"]
    del state["metrics"]  # the checksum of lines that hold seconds
    return {
        "best weights": folder.model_path.read_bytes(),
        "model": (path / "model.json").read_bytes(),
        "metrics": [timeless(line) for line in folder.metrics()],
        "summary": timeless(summary),
        "exits": left,
        "state": bits(state),
    }


def bits(value: Any) -> Any:
    """Tensors as bytes, wherever they are."""
    if isinstance(value, Tensor):
        return str(value.dtype), tuple(value.shape), value.numpy().tobytes()
    if isinstance(value, dict):
        return {key: bits(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [bits(entry) for entry in value]
    return value
