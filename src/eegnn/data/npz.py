"""Your own data, as PyG's ``Data`` or as named arrays, becomes a problem or an ``.npz`` file."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from eegnn.data.arrays import Arrays, NamedArrays, write_arrays
from eegnn.data.labels import labels_from_arrays
from eegnn.data.links import problem_from_pairs
from eegnn.data.problem import Metric, Problem
from eegnn.data.splits import MASKS, PARTS, split_from_arrays
from eegnn.typing import Level, Task


def write_npz(
    path: str | PathLike[str],
    graphs: Data | Sequence[Data],
    parts: tuple[Tensor, Tensor, Tensor] | None = None,
    num_classes: int | None = None,
) -> None:
    """Write graphs as an ``.npz`` file for :func:`eegnn.data.files.read_problem`.

    Args:
        path: a file name ending in ``.npz``.
        graphs: one graph, whose masks are written too, or many.
        parts: indices of training, validation and test, instead of masks.
        num_classes: needed if not every class occurs.
    """
    if Path(path).suffix != ".npz":
        raise ValueError(f"path must end in .npz, got {str(path)!r}")
    named = arrays_from_pyg("graphs", graphs, parts, num_classes)
    graphs_from_arrays(named)  # what could not be read is not written
    write_arrays(Path(path), named.arrays)


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

    The nodes of a single graph are split, by its masks if it has them; of several, the graphs are
    split. ``x``, ``edge_index``, ``edge_attr`` and ``y`` are kept.

    Args:
        graphs: the data.
        name: what messages call the problem.
        parts: indices of training, validation and test. Default: masks, else 60/20/20 at random.
        num_classes: needed if not every class occurs.
        split, level, task, metric: as in :func:`eegnn.data.files.read_problem`.
    """
    named = arrays_from_pyg(name, graphs, parts, num_classes)
    return problem_from_arrays(name, named, split, level, task, metric)


def problem_from_arrays(
    name: str,
    arrays: NamedArrays,
    split: int,
    level: Level | None,
    task: Task | None,
    metric: Metric | None,
) -> Problem:
    """Check the arrays that :func:`eegnn.data.files.read_problem` describes; make a problem."""
    graphs = graphs_from_arrays(arrays)
    inductive = "ptr" in arrays
    if "edge_label_index" in arrays:
        if inductive or level not in (None, "edge"):
            raise ValueError(
                f"{arrays.source}: edge_label_index is for level 'edge' on one graph without ptr"
            )
        return problem_from_pairs(name, arrays, graphs[0], split, task, metric)
    sizes = [int(graph.num_nodes or 0) for graph in graphs]
    labels = labels_from_arrays(arrays, len(graphs) if inductive else None, level, task, metric)
    parts = split_from_arrays(arrays, len(graphs) if inductive else sizes[0], split)
    rows = sizes if labels.level == "node" else [1] * len(graphs)
    for graph, y in zip(graphs, labels.y.split(rows), strict=True):
        graph.y = y
    return Problem(
        name=name,
        graphs=graphs,
        level=labels.level,
        task=labels.task,
        metric=labels.metric,
        out_channels=labels.out_channels,
        train=parts.train,
        val=parts.val,
        test=parts.test,
        inductive=inductive,
        notes={"source": arrays.source, "split": parts.note, "features": "as given"},
    )


def graphs_from_arrays(arrays: NamedArrays, categorical: Collection[str] = ()) -> list[Data]:
    """Check ``x``, ``edge_index``, ``edge_attr`` and ``ptr``, and make the graphs of them."""
    x = arrays.features("x", "x" in categorical)
    edge_index = arrays.integers("edge_index", ndim=2)
    source, shape = arrays.source, list(edge_index.shape)
    if len(x) == 0:
        raise ValueError(f"{source}: x must have at least one row, got shape {list(x.shape)}")
    if len(edge_index) != 2:
        raise ValueError(f"{source}: edge_index must have shape [2, E], got {shape}")
    arrays.check_range("edge_index", edge_index, len(x), "x has that many rows")
    edge_attr = None
    if "edge_attr" in arrays:
        edge_attr = arrays.features("edge_attr", "edge_attr" in categorical)
        if len(edge_attr) != shape[1]:
            raise ValueError(
                f"{source}: edge_attr must have one row for each of the {shape[1]} columns of "
                f"edge_index, got {len(edge_attr)}"
            )
    if "ptr" not in arrays:
        graph = _data(x, edge_index, edge_attr)
        if "edge_label_index" in arrays:
            pairs = arrays.integers("edge_label_index", ndim=2)
            graph.edge_label_index = torch.from_numpy(pairs)
        return [graph]
    ptr = arrays.integers("ptr", ndim=1)
    return [
        _data(
            x[start:end],
            edge_index[:, edges] - start,
            None if edge_attr is None else edge_attr[edges],
        )
        for start, end, edges in zip(
            ptr[:-1], ptr[1:], _edges_by_graph(source, edge_index, ptr, len(x)), strict=True
        )
    ]


def _edges_by_graph(
    source: str, edge_index: NDArray[np.int64], ptr: NDArray[np.int64], num_nodes: int
) -> list[NDArray[np.int64]]:
    """For each graph, the numbers of its edges, in the order of ``edge_index``."""
    if len(ptr) < 2 or ptr[0] != 0 or ptr[-1] != num_nodes or (np.diff(ptr) < 1).any():
        raise ValueError(
            f"{source}: ptr must rise from 0 to {num_nodes}, the number of rows of x, with at "
            f"least one node for each graph"
        )
    owner = np.searchsorted(ptr, edge_index, side="right") - 1
    crossing = np.flatnonzero(owner[0] != owner[1])
    if crossing.size:
        raise ValueError(
            f"{source}: edge_index must join nodes of the same graph, but edge {crossing[0]} joins "
            f"graphs {owner[0, crossing[0]]} and {owner[1, crossing[0]]} of ptr"
        )
    order = np.argsort(owner[0], kind="stable")
    return np.split(order, np.searchsorted(owner[0][order], np.arange(1, len(ptr) - 1)))


def _data(
    x: NDArray[np.float32], edge_index: NDArray[np.int64], edge_attr: NDArray[np.float32] | None
) -> Data:
    data = Data(x=torch.from_numpy(x), edge_index=torch.from_numpy(edge_index))
    if edge_attr is not None:
        data.edge_attr = torch.from_numpy(edge_attr)
    return data


def arrays_from_pyg(
    source: str,
    graphs: Data | Sequence[Data],
    parts: tuple[Tensor, Tensor, Tensor] | None = None,
    num_classes: int | None = None,
) -> NamedArrays:
    """The arrays that an ``.npz`` file of these graphs holds; ``ptr`` only if there are several."""
    # A Dataset is not a list, but it has a length and can be indexed.
    listed = [graphs] if isinstance(graphs, Data) else [graphs[i] for i in range(len(graphs))]
    _check_graphs(source, listed)
    ptr = np.cumsum([0, *(len(graph.x) for graph in listed)])
    starts = zip(listed, ptr[:-1], strict=True)
    edges = [_numpy(graph.edge_index) + start for graph, start in starts]
    arrays: Arrays = {"x": _join(source, listed, "x"), "edge_index": np.concatenate(edges, axis=1)}
    for key in ("y", "edge_attr"):
        if getattr(listed[0], key) is not None:
            arrays[key] = _join(source, listed, key)
    if len(listed) > 1:
        arrays["ptr"] = ptr
    for key in ("edge_label_index", "edge_label"):
        if key in listed[0]:
            arrays[key] = _numpy(listed[0][key])
    if parts is not None:
        arrays |= {key: _numpy(part) for key, part in zip(PARTS, parts, strict=True)}
    elif len(listed) == 1:
        arrays |= {key: _numpy(listed[0][key]) for key in MASKS if key in listed[0]}
    if num_classes is not None:
        arrays["num_classes"] = _numpy(num_classes)
    return NamedArrays(source, arrays)


def _check_graphs(source: str, graphs: Sequence[Data]) -> None:
    if not graphs:
        raise ValueError(f"{source}: there is no graph")
    for index, graph in enumerate(graphs):
        if not isinstance(graph, Data):
            raise TypeError(f"{source}: graph {index} must be PyG Data, got {type(graph).__name__}")
        if graph.x is None:
            raise ValueError(
                f"{source}: graph {index} has no x; the transforms Constant or OneHotDegree make "
                f"features"
            )
        if graph.edge_index is None:
            raise ValueError(f"{source}: graph {index} has no edge_index")
        for key in ("x", "edge_index"):
            if not isinstance(graph[key], Tensor) or graph[key].dim() != 2:
                raise TypeError(f"{source}: graph {index}: {key} must be a tensor of 2 dimensions")
        for key in ("y", "edge_attr"):
            if (getattr(graph, key) is None) != (getattr(graphs[0], key) is None):
                raise ValueError(f"{source}: {key} must be given for all graphs or for none")


def _join(source: str, graphs: Sequence[Data], key: str) -> NDArray[Any]:
    try:
        return np.concatenate([np.atleast_1d(_numpy(graph[key])) for graph in graphs])
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(
            f"{source}: {key} differs in shape between graphs, or is no tensor: {error}"
        ) from error


def _numpy(value: Any) -> NDArray[Any]:
    return torch.as_tensor(value).detach().cpu().numpy()
