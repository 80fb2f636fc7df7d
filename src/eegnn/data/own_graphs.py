"""One's own graphs: plain arrays checked once, cut into PyG ``Data``, and back."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data

from eegnn.data.arrays import Arrays

INTEGERS, FLOATS = "iu", "f"
_ROWS = 2**16


def graphs_from_arrays(where: str, arrays: Arrays, categorical: Collection[str] = ()) -> list[Data]:
    """Check ``x``, ``edge_index``, ``edge_attr`` and ``ptr``, and cut them into graphs.

    Args:
        where: what error messages begin with: a file name.
        arrays: see :func:`eegnn.data.npz.read_npz`.
        categorical: which of ``"x"`` and ``"edge_attr"`` may hold integers.
    """
    x = features(where, arrays, "x", categorical)
    edge_index = integers(where, arrays, "edge_index", dimensions=2)
    if len(x) == 0:
        raise ValueError(f"{where}: x must have at least one row, got shape {list(x.shape)}")
    if len(edge_index) != 2:
        raise ValueError(
            f"{where}: edge_index must have shape [2, E], got {list(edge_index.shape)}"
        )
    in_range(where, "edge_index", edge_index, len(x), "x has that many rows")
    edge_attr = None
    if "edge_attr" in arrays:
        edge_attr = features(where, arrays, "edge_attr", categorical)
        if len(edge_attr) != edge_index.shape[1]:
            raise ValueError(
                f"{where}: edge_attr must have one row for each of the {edge_index.shape[1]} "
                f"columns of edge_index, got {len(edge_attr)}"
            )
    if "ptr" not in arrays:
        return [_data(x, edge_index, edge_attr)]
    return _cut(where, x, edge_index, edge_attr, _pointer(where, arrays, len(x)))


def arrays_from_graphs(where: str, graphs: Sequence[Data]) -> Arrays:
    """The arrays of one graph, or, with ``ptr``, of many; labels included where there are any."""
    if not graphs:
        raise ValueError(f"{where}: there is no graph")
    for index, graph in enumerate(graphs):
        if not isinstance(graph, Data):
            raise TypeError(f"{where}: graph {index} must be PyG Data, got {type(graph).__name__}")
        if graph.x is None or graph.edge_index is None:
            key = "edge_index" if graph.x is not None else "x"
            hint = "; the transforms Constant or OneHotDegree make features" if key == "x" else ""
            raise ValueError(f"{where}: graph {index} has no {key}{hint}")
        for key in ("y", "edge_attr"):
            if (getattr(graph, key) is None) != (getattr(graphs[0], key) is None):
                raise ValueError(f"{where}: {key} must be given for all graphs or for none")
    sizes = [len(graph.x) for graph in graphs]
    ptr = np.concatenate([[0], np.cumsum(sizes)])
    shifted = [
        _numpy(graph.edge_index) + start for graph, start in zip(graphs, ptr[:-1], strict=True)
    ]
    arrays = {"x": _join(where, graphs, "x"), "edge_index": np.concatenate(shifted, axis=1)}
    for key in ("y", "edge_attr"):
        if getattr(graphs[0], key) is not None:
            arrays[key] = _join(where, graphs, key)
    return arrays if len(graphs) == 1 else {**arrays, "ptr": ptr}


def take(where: str, arrays: Arrays, key: str) -> NDArray[Any]:
    """Return the array of this name."""
    if key not in arrays:
        raise ValueError(f"{where}: {key} is missing; there is {', '.join(arrays) or 'nothing'}")
    return arrays[key]


def features(
    where: str, arrays: Arrays, key: str, categorical: Collection[str]
) -> NDArray[np.float32]:
    """Return a finite matrix as ``float32``; integers only where there may be categories.

    One that is mapped from a file must have this type already, and stays there.
    """
    array = take(where, arrays, key)
    if array.dtype.kind not in (INTEGERS + FLOATS if key in categorical else FLOATS):
        raise TypeError(
            f"{where}: {key} must be floating point, got {array.dtype}: use .astype('float32')"
        )
    _dimensions(where, key, array, 2)
    mapped = isinstance(array, np.memmap)
    if mapped and array.dtype != np.float32:
        raise TypeError(f"{where}: {key} in a file of its own must be float32, got {array.dtype}")
    with np.errstate(over="ignore"):  # what float32 cannot hold becomes infinite, and is refused
        array = array if mapped else array.astype(np.float32)
    finite(where, key, array)
    return array


def integers(where: str, arrays: Arrays, key: str, dimensions: int) -> NDArray[np.int64]:
    """Return an array as ``int64``."""
    array = take(where, arrays, key)
    if array.dtype.kind not in INTEGERS:
        raise TypeError(f"{where}: {key} must hold integers, got {array.dtype}")
    _dimensions(where, key, array, dimensions)
    return array.astype(np.int64)


def finite(where: str, key: str, array: NDArray[Any]) -> None:
    """Refuse NaN and infinity."""
    for start in range(0, len(array), _ROWS):  # so that a large array needs no second one
        good = np.isfinite(array[start : start + _ROWS])
        if not good.all():
            row = start + int(np.argwhere(~good)[0][0])
            raise ValueError(f"{where}: {key} holds NaN or infinite values, first in row {row}")


def in_range(where: str, key: str, index: NDArray[np.int64], count: int, why: str) -> None:
    """Refuse indices outside ``0 … count − 1``."""
    outside = (index < 0) | (index >= count)
    if outside.any():
        raise ValueError(
            f"{where}: {key} must lie in 0 … {count - 1} ({why}), got {index[outside][0]}"
        )


def _dimensions(where: str, key: str, array: NDArray[Any], dimensions: int) -> None:
    if array.ndim != dimensions:
        raise ValueError(f"{where}: {key} must have {dimensions} dimensions, got {array.ndim}")


def _pointer(where: str, arrays: Arrays, nodes: int) -> NDArray[np.int64]:
    ptr = integers(where, arrays, "ptr", dimensions=1)
    if len(ptr) < 2 or ptr[0] != 0 or ptr[-1] != nodes or (np.diff(ptr) < 1).any():
        raise ValueError(
            f"{where}: ptr must rise from 0 to {nodes}, the number of rows of x, with at least one "
            f"node for each graph"
        )
    return ptr


def _cut(
    where: str,
    x: NDArray[np.float32],
    edge_index: NDArray[np.int64],
    edge_attr: NDArray[np.float32] | None,
    ptr: NDArray[np.int64],
) -> list[Data]:
    owner = np.searchsorted(ptr, edge_index, side="right") - 1
    crossing = np.flatnonzero(owner[0] != owner[1])
    if crossing.size:
        raise ValueError(
            f"{where}: edge_index must join nodes of the same graph, but edge {crossing[0]} joins "
            f"graphs {owner[0, crossing[0]]} and {owner[1, crossing[0]]} of ptr"
        )
    order = np.argsort(owner[0], kind="stable")
    ends = np.searchsorted(owner[0][order], np.arange(1, len(ptr) - 1))
    return [
        _data(
            x[start:end],
            edge_index[:, edges] - start,
            None if edge_attr is None else edge_attr[edges],
        )
        for start, end, edges in zip(ptr[:-1], ptr[1:], np.split(order, ends), strict=True)
    ]


def _data(
    x: NDArray[np.float32], edge_index: NDArray[np.int64], edge_attr: NDArray[np.float32] | None
) -> Data:
    data = Data(x=torch.from_numpy(x), edge_index=torch.from_numpy(edge_index))
    if edge_attr is not None:
        data.edge_attr = torch.from_numpy(edge_attr)
    return data


def _numpy(value: Any) -> NDArray[Any]:
    return np.atleast_1d(torch.as_tensor(value).detach().cpu().numpy())


def _join(where: str, graphs: Sequence[Data], key: str) -> NDArray[Any]:
    try:
        return np.concatenate([_numpy(graph[key]) for graph in graphs])
    except ValueError as error:
        raise ValueError(f"{where}: {key} differs in shape between graphs: {error}") from error
