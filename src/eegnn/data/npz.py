"""Your own data: an ``.npz`` file, or PyG's ``Data``, becomes a problem."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from eegnn.data.arrays import Arrays, map_array, read_arrays, write_arrays
from eegnn.data.own_graphs import arrays_from_graphs, graphs_from_arrays
from eegnn.data.own_labels import Labels, labels_from_arrays
from eegnn.data.own_splits import MASKS, PARTS, split_from_arrays
from eegnn.data.problem import Metric, Problem
from eegnn.typing import Level, Task


def read_npz(
    path: str | PathLike[str],
    split: int = 0,
    level: Level | None = None,
    task: Task | None = None,
    metric: Metric | None = None,
) -> Problem:
    """Read a problem from a file made by :func:`write_npz` or by ``numpy.savez(path, x=…, …)``.

    ================ ============== ==============================================================
    key              shape          what
    ================ ============== ==============================================================
    ``x``            [N, F] float   features of all nodes
    ``edge_index``   [2, E] int     edges, in PyG's convention, with the row numbers of ``x``
    ``y``            [U] or [U, C]  labels of nodes (U = N) or of graphs (U = G)
    ``ptr``          [G + 1] int    only for many graphs: graph g has the nodes ptr[g] … ptr[g+1]−1
    ``edge_attr``    [E, D] float   optional: features of edges
    ``train_mask``   [V] or [V, S]  optional, with ``val_mask`` and ``test_mask``: boolean, S splits
    ``train``        [·] int        instead, with ``val`` and ``test``: indices
    ``num_classes``  [] int         optional: if not every class occurs in ``y``
    ================ ============== ==============================================================

    A split divides the nodes of a single graph (V = N), or, with ``ptr``, the graphs (V = G).
    Without one, 60/20/20 % are chosen at random with ``split`` as the seed. Other keys are ignored.

    Features that are too many for memory have a file of their own: without ``x`` in ``graph.npz``,
    they are those of ``graph.x.npy`` beside it, ``float32``, made by ``numpy.save`` or piece by
    piece with ``numpy.lib.format.open_memmap``. It is mapped into memory, not read.

    Args:
        path: the file. Python objects in it are refused, never unpickled.
        split: which column of the masks.
        level: ``"node"`` or ``"graph"``. Default: what has as many as ``y`` has rows.
        task: default: ``"classification"`` for integers, ``"multilabel"`` for a matrix of 0 and 1,
            else ``"regression"``.
        metric: default: ``"accuracy"`` or, for two classes, ``"roc_auc"``; ``"ap"`` for several
            labels; ``"mae"`` for regression.
    """
    where = Path(path)
    return _problem(where.stem, str(path), _read(where), split, level, task, metric)


def read_graphs(path: str | PathLike[str], categorical: Collection[str] = ()) -> list[Data]:
    """Read only the graphs of a file, for predictions: neither labels nor a split are needed.

    Args:
        path: the file.
        categorical: which of ``"x"`` and ``"edge_attr"`` begin with categories, and so may hold
            integers.
    """
    return graphs_from_arrays(str(path), _read(Path(path)), categorical)


def write_npz(
    path: str | PathLike[str],
    graphs: Data | Sequence[Data],
    parts: tuple[Tensor, Tensor, Tensor] | None = None,
    num_classes: int | None = None,
) -> None:
    """Write graphs in the format of :func:`read_npz`.

    Args:
        path: a file name ending in ``.npz``.
        graphs: one graph, whose masks are written too, or many.
        parts: indices of training, validation and test, instead of masks.
        num_classes: needed if not every class occurs.
    """
    if Path(path).suffix != ".npz":
        raise ValueError(f"path must end in .npz, got {str(path)!r}")
    arrays = _arrays("graphs", graphs, parts, num_classes)
    graphs_from_arrays("graphs", arrays)  # what could not be read is not written
    write_arrays(Path(path), arrays)


def problem_from_pyg(
    graphs: Data | Sequence[Data],
    name: str = "graphs",
    parts: tuple[Tensor, Tensor, Tensor] | None = None,
    num_classes: int | None = None,
    split: int = 0,
    level: Level | None = None,
    task: Task | None = None,
    metric: Metric | None = None,
) -> Problem:
    """Make a problem of a PyG ``Data``, a ``Dataset`` or a list of ``Data``.

    One graph is one to be divided by its nodes, with its masks if it has them; several are divided
    by graphs. ``x``, ``edge_index``, ``edge_attr`` and ``y`` are kept.

    Args:
        graphs: the data.
        name: for people.
        parts: indices of training, validation and test. Default: masks, else 60/20/20 at random.
        num_classes: needed if not every class occurs.
        split, level, task, metric: as in :func:`read_npz`.
    """
    arrays = _arrays(name, graphs, parts, num_classes)
    return _problem(name, name, arrays, split, level, task, metric)


def _read(path: Path) -> Arrays:
    arrays, features = read_arrays(path), path.with_suffix(".x.npy")
    if not features.exists():
        return arrays
    if "x" in arrays:
        raise ValueError(f"{path}: x is in this file and in {features}: remove one of them")
    return {"x": map_array(features), **arrays}


def _arrays(
    where: str,
    graphs: Data | Sequence[Data],
    parts: tuple[Tensor, Tensor, Tensor] | None,
    num_classes: int | None,
) -> Arrays:
    # A Dataset is no list, but can be gone through like one.
    listed = [graphs] if isinstance(graphs, Data) else [graphs[i] for i in range(len(graphs))]
    arrays = arrays_from_graphs(where, listed)
    chosen: dict[str, Any] = {}
    if parts is not None:
        chosen = dict(zip(PARTS, parts, strict=True))
    elif len(listed) == 1:
        chosen = {key: listed[0][key] for key in MASKS if key in listed[0]}
    if num_classes is not None:
        chosen["num_classes"] = num_classes
    return arrays | {key: torch.as_tensor(value).cpu().numpy() for key, value in chosen.items()}


def _problem(
    name: str,
    where: str,
    arrays: Arrays,
    split: int,
    level: Level | None,
    task: Task | None,
    metric: Metric | None,
) -> Problem:
    graphs = graphs_from_arrays(where, arrays)
    many = "ptr" in arrays
    nodes = len(arrays["x"])
    labels = labels_from_arrays(
        where, arrays, nodes, len(graphs) if many else None, level, task, metric
    )
    (train, val, test), origin = split_from_arrays(
        where, arrays, len(graphs) if many else nodes, split
    )
    _attach(graphs, labels)
    return Problem(
        name=name,
        graphs=graphs,
        level=labels.level,
        task=labels.task,
        metric=labels.metric,
        out_channels=labels.out_channels,
        train=train,
        val=val,
        test=test,
        inductive=many,
        notes={"source": where, "split": origin, "features": "as given"},
    )


def _attach(graphs: list[Data], labels: Labels) -> None:
    by_node = labels.level == "node"
    rows = [int(graph.num_nodes or 0) if by_node else 1 for graph in graphs]
    for graph, y in zip(graphs, labels.y.split(rows), strict=True):
        graph.y = y
