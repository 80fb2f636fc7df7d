"""EEGNN end to end on generated data: train on a Minesweeper board, and see when nodes leave."""

from __future__ import annotations

import statistics
import timeit
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from eegnn.data.minesweeper import minesweeper
from eegnn.data.npz import problem_from_pyg
from eegnn.graph import Adjacency
from eegnn.nn.exits import Exits
from eegnn.train.config import Config
from eegnn.train.loop import Trainer
from eegnn.train.metrics import roc_auc
from eegnn.train.run import RunFolder

#: Weight of the cost of steps: exits at 6 to 8 of 21 steps instead of about 10, and no lower score.
COST_WEIGHT = 0.01


@dataclass(frozen=True)
class DemoResult:
    """What the demo found, at the epoch with the best validation score."""

    data: Data
    exits: Exits
    score: Tensor
    best_epoch: int
    val: float
    test: float
    test_full_depth: float
    params: int
    seconds_with_exits: float
    seconds_full_depth: float

    def as_dict(self) -> dict[str, Any]:
        """Return the numbers, for JSON."""
        numbers = {k: v for k, v in vars(self).items() if k not in ("data", "exits", "score")}
        names = {"dataset": "minesweeper-generated", "model": "eegnn", "metric": "roc_auc"}
        return {**names, **numbers, "exits": self.exits.summary()}


def run_demo(
    size: int, epochs: int, seed: int, on_epoch: Callable[[dict[str, Any]], None]
) -> DemoResult:
    """Train EEGNN on a generated board; ``seed`` is that of the board and of the weights."""
    # On a board of this size a second thread gains little when the machine is idle, and costs five
    # times the time when it is not.
    torch.set_num_threads(1)
    data = minesweeper(size, seed)
    problem = problem_from_pyg(data, "minesweeper-generated", metric="roc_auc")
    config = Config(dataset=problem.name, epochs=epochs, seed=seed, cost_weight=COST_WEIGHT)
    with TemporaryDirectory() as folder:
        trainer = Trainer(config, problem, RunFolder(Path(folder)))
        summary = trainer.fit(on_epoch)
        model = trainer.folder.model()

    adj = Adjacency.from_edge_index(data.edge_index, data.num_nodes)
    predict = partial(model.predict, data.x, adj)
    predict_full_depth = partial(predict, exit_threshold=1.0)
    out, exits = predict()
    full_depth, _ = predict_full_depth()
    return DemoResult(
        data=data,
        exits=exits,
        score=out.softmax(dim=-1)[:, 1],
        best_epoch=summary["best_epoch"],
        val=summary["val"],
        test=summary["test"],
        test_full_depth=roc_auc(full_depth[data.test_mask], data.y[data.test_mask]),
        params=summary["params"],
        seconds_with_exits=_median_seconds(predict),
        seconds_full_depth=_median_seconds(predict_full_depth),
    )


def _median_seconds(function: Callable[[], object]) -> float:
    return statistics.median(timeit.repeat(function, number=1, repeat=15))
