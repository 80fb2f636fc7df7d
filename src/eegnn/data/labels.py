"""What is to be predicted, inferred from the labels of one's own data."""

from __future__ import annotations

from typing import Any, NamedTuple, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from eegnn import _check
from eegnn.data.arrays import FLOATS, INTEGERS, NamedArrays
from eegnn.data.problem import Metric
from eegnn.typing import Level, Task

METRICS: dict[Task, tuple[Metric, ...]] = {
    "classification": ("accuracy", "roc_auc", "f1"),
    "multilabel": ("ap", "roc_auc", "hits@20", "mrr"),
    "regression": ("mae", "mse"),
}


class Labels(NamedTuple):
    """Labels as :class:`~eegnn.data.problem.Problem` wants them."""

    y: Tensor
    level: Level
    task: Task
    metric: Metric
    out_channels: int


def labels_from_arrays(
    arrays: NamedArrays,
    num_graphs: int | None,
    level: Level | None,
    task: Task | None,
    metric: Metric | None,
) -> Labels:
    """Check ``y``, and infer what is not given.

    ``num_graphs`` is ``None`` for a single graph without ``ptr``; the arrays are those of
    :func:`eegnn.data.files.read_problem`.
    """
    source, y = arrays.source, arrays["y"]
    if y.dtype.kind == "b":
        y = y.astype(np.int64)
    if y.dtype.kind not in INTEGERS + FLOATS:
        raise TypeError(f"{source}: y must hold integers or floating-point numbers, got {y.dtype}")
    if y.ndim not in (1, 2) or y.size == 0:
        raise ValueError(f"{source}: y must have shape [U] or [U, C], got {list(y.shape)}")
    arrays.check_finite("y", y)
    level = _level(source, len(y), len(arrays["x"]), num_graphs, level)
    task = _task(y) if task is None else _check.choice("task", task, get_args(Task))
    if task == "classification":
        values: NDArray[Any] = _classes(source, y)
        channels = _num_classes(arrays, values)
    else:
        values = y.astype(np.float32).reshape(len(y), -1)
        arrays.check_finite("y", values)
        channels = values.shape[1]
    if task == "multilabel" and not np.isin(values, (0, 1)).all():
        raise ValueError(f"{source}: y must hold 0 and 1 only for the task 'multilabel'")
    metric = _metric(source, task, channels, metric)
    return Labels(torch.from_numpy(values), level, task, metric, channels)


def _level(source: str, rows: int, nodes: int, graphs: int | None, level: Level | None) -> Level:
    if level is not None:
        _check.choice("level", level, get_args(Level))
    if level == "edge":
        raise ValueError(f"{source}: level 'edge' needs pairs, given by edge_label_index")
    if graphs is None:
        if level == "graph":
            raise ValueError(f"{source}: level 'graph' needs several graphs, given by ptr")
        level, wanted = "node", f"{nodes}, one for each node"
    else:
        wanted = f"{nodes} (one for each node) or {graphs} (one for each graph)"
        if level is None and nodes == graphs:
            raise ValueError(f"{source}: every graph has one node; give level='node' or 'graph'")
        if level is None:
            level = "node" if rows == nodes else "graph"
    if rows != (nodes if level == "node" else graphs):
        raise ValueError(f"{source}: y has {rows} rows; for level {level!r} there must be {wanted}")
    return level


def _task(y: NDArray[Any]) -> Task:
    if y.ndim == 2 and y.shape[1] > 1 and np.isin(y, (0, 1)).all():
        return "multilabel"
    return "classification" if y.dtype.kind in INTEGERS else "regression"


def _classes(source: str, y: NDArray[Any]) -> NDArray[np.int64]:
    if y.dtype.kind not in INTEGERS or (y.ndim == 2 and y.shape[1] > 1):
        raise TypeError(
            f"{source}: y must hold one integer for each row for the task 'classification', got "
            f"{y.dtype} {list(y.shape)}"
        )
    return y.reshape(-1).astype(np.int64)


def _num_classes(arrays: NamedArrays, classes: NDArray[np.int64]) -> int:
    found = np.unique(classes)
    if "num_classes" in arrays:
        count = int(arrays.integers("num_classes", ndim=0))
        arrays.check_range("y", found, count, f"num_classes is {count}")
    else:
        count = len(found)
        if found[0] != 0 or found[-1] != count - 1:
            shown = ", ".join(map(str, found[:5])) + (", …" if count > 5 else "")
            raise ValueError(
                f"{arrays.source}: y must hold class numbers 0 … C−1, but its values are {shown}; "
                f"if some classes do not occur, give num_classes"
            )
    if count < 2:
        raise ValueError(f"{arrays.source}: y must hold at least two classes, got {count}")
    return count


def _metric(source: str, task: Task, channels: int, metric: Metric | None) -> Metric:
    if metric is None:
        binary = task == "classification" and channels == 2
        return "roc_auc" if binary else METRICS[task][0]
    _check.choice("metric", metric, METRICS[task])
    if metric in ("hits@20", "mrr") and channels != 1:
        raise ValueError(f"{source}: metric {metric!r} ranks links, y has {channels} labels")
    if metric == "roc_auc" and task == "classification" and channels != 2:
        raise ValueError(f"{source}: metric 'roc_auc' is for two classes, y has {channels}")
    return metric
