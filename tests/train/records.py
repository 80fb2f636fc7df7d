"""Records of runs that were never trained."""

from __future__ import annotations

import hashlib
from typing import Any

from eegnn.train.run import RunFolder

#: What `summary.json` holds.
SUMMARY: dict[str, Any] = {
    "dataset": "by-hand",
    "model": "eegnn",
    "split": 0,
    "seed": 0,
    "epochs": 5,
    "best_epoch": 3,
    "metric": "roc_auc",
    "val": 0.6,
    "test": 0.55,
    "params": 100,
    "exits": {"min": 1, "median": 2.0, "mean": 2.5, "max": 4, "histogram": [0, 1, 1, 0, 1]},
    "seconds": 90.0,
}


def line_of(epoch: int) -> dict[str, Any]:
    """A line of `metrics.jsonl`; the second epoch was not tested."""
    return {
        "epoch": epoch,
        "loss": 1.0 / epoch,
        "val": 0.5,
        "test": None if epoch == 2 else 0.25,
        "exit_mean": 2.5,
        "exit_quantiles": [1.0, 2.0, 4.0],
        "grad": {"confidence": 0.125},
        "lr": 0.01,
        "seconds": 0.5,
    }


def state_after(run: RunFolder, epochs: int) -> dict[str, Any]:
    """What a state says of the epochs so far: how many, and what their lines are."""
    path = run.path / "metrics.jsonl"
    lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
    digest = hashlib.sha256(b"".join(lines[:epochs])).hexdigest()
    return {"progress": {"epoch": epochs}, "metrics": digest}
