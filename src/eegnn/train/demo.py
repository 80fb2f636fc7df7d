"""EEGNN end to end on generated data: train on a Minesweeper board, and see who left when."""

from __future__ import annotations

import copy
import statistics
import timeit
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from eegnn.data.minesweeper import minesweeper
from eegnn.graph import Adjacency
from eegnn.nn.eegnn import EEGNN
from eegnn.nn.exits import Exits
from eegnn.train.metrics import roc_auc

#: Weight of the cost of steps: exits at 6 to 8 of 21 steps instead of about 10, and no lower score.
COST_WEIGHT = 0.01


@dataclass(frozen=True)
class DemoResult:
    """What the demo found, at the epoch with the best validation score."""

    data: Data
    model: EEGNN
    exits: Exits
    score: Tensor
    best_epoch: int
    val: float
    test: float
    test_full_depth: float
    seconds_with_exits: float
    seconds_full_depth: float

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "dataset": "minesweeper-generated",
            "model": "eegnn",
            "metric": "roc_auc",
            "best_epoch": self.best_epoch,
            "val": self.val,
            "test": self.test,
            "test_full_depth": self.test_full_depth,
            "params": sum(p.numel() for p in self.model.parameters()),
            "exits": self.exits.summary(),
            "seconds_with_exits": self.seconds_with_exits,
            "seconds_full_depth": self.seconds_full_depth,
        }


def run_demo(
    size: int, epochs: int, seed: int, on_epoch: Callable[[dict[str, Any]], None]
) -> DemoResult:
    """Train EEGNN on a generated board.

    Args:
        size: cells on a side.
        epochs: full-batch epochs.
        seed: of the board and of the weights.
        on_epoch: called after each epoch with its ``epoch``, ``loss``, ``val`` (ROC AUC) and
            ``exit_mean``.
    """
    # On a board of this size a second thread gains little when the machine is idle, and costs five
    # times the time when it is not.
    torch.set_num_threads(1)
    data = minesweeper(size, seed)
    torch.manual_seed(seed)
    model = EEGNN(data.num_features, 32, 2, num_layers=21)
    adj = Adjacency.from_edge_index(data.edge_index, data.num_nodes)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    best, best_epoch, weights = -1.0, 0, model.state_dict()
    for epoch in range(1, epochs + 1):
        model.train()
        optimizer.zero_grad()
        out, exits = model(data.x, adj, return_exits=True)
        mask = data.train_mask
        loss = torch.nn.functional.cross_entropy(out[mask], data.y[mask])
        (loss + COST_WEIGHT * exits.cost).backward()
        optimizer.step()

        out, exits = model.predict(data.x, adj)
        val = _auc(out, data, data.val_mask)
        if val > best:
            best, best_epoch, weights = val, epoch, copy.deepcopy(model.state_dict())
        mean = float(exits.layer.double().mean())
        on_epoch({"epoch": epoch, "loss": loss.item(), "val": val, "exit_mean": mean})

    model.load_state_dict(weights)
    out, exits = model.predict(data.x, adj)
    full_depth, _ = model.predict(data.x, adj, exit_threshold=1.0)
    return DemoResult(
        data=data,
        model=model.eval(),
        exits=exits,
        score=out.softmax(dim=-1)[:, 1],
        best_epoch=best_epoch,
        val=best,
        test=_auc(out, data, data.test_mask),
        test_full_depth=_auc(full_depth, data, data.test_mask),
        seconds_with_exits=_seconds(lambda: model.predict(data.x, adj)),
        seconds_full_depth=_seconds(lambda: model.predict(data.x, adj, exit_threshold=1.0)),
    )


def _auc(out: Tensor, data: Data, mask: Tensor) -> float:
    return roc_auc(out[mask], data.y[mask])


def _seconds(function: Callable[[], object], passes: int = 15) -> float:
    return statistics.median(timeit.repeat(function, number=1, repeat=passes))
