"""A power-law graph of any size, written to files without being held in memory."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.lib.format import open_memmap
from numpy.typing import NDArray

from eegnn import _check
from eegnn.data.powerlaw import (
    CLASSES,
    COMMUNITY,
    DEGREE,
    FEATURES,
    INSIDE,
    SIGNAL,
    cumulative_weights,
    draw_pairs,
)
from eegnn.source import MappedGraph

#: Edges that are drawn, and nodes whose rows are sorted, at a time.
EDGES, ROWS = 2**20, 2**17


def write_powerlaw(folder: str | PathLike[str], nodes: int, seed: int = 0) -> MappedGraph:
    """Write a graph like those of :func:`~eegnn.data.powerlaw.powerlaw` as mapped files.

    It differs in two things. Nodes are numbered by community, so that ranges of numbers are blocks
    with few edges between them. Edges that are drawn twice are not drawn again, so that the mean
    degree is a little below 10. Labels are in ``graph.y.npy``.

    In memory are a few numbers for each node, never the edges: they are drawn piece by piece,
    sorted into files by ranges of nodes, and each of these is then sorted by itself.

    Args:
        folder: where the files go.
        nodes: number of nodes, at least 16,000.
        seed: the same seed gives the same graph.
    """
    n = _check.integer("nodes", nodes, at_least=2 * CLASSES * COMMUNITY)
    rng = np.random.default_rng(_check.integer("seed", seed, at_least=0))
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    near, far = cumulative_weights(n, rng)
    with tempfile.TemporaryDirectory(dir=path) as temporary:
        for pairs in _pieces(near, far, rng):
            _append(Path(temporary), pairs, n)
        _write_rows(path, Path(temporary), n)
    _write_features(path, n, rng)
    return MappedGraph(path)


def _pieces(
    near: NDArray[np.float64], far: NDArray[np.float64], rng: np.random.Generator
) -> Iterator[NDArray[np.int64]]:
    """Undirected edges ``[2, E]``, piece by piece, without self-loops."""
    left = DEGREE * (len(near) - 1) // 2
    while left > 0:
        count = min(EDGES, left)
        inside = round(INSIDE * count)
        u, v = draw_pairs(near, far, COMMUNITY, inside, count - inside, rng)
        yield np.stack([u, v])[:, u != v]
        left -= count


def _append(folder: Path, pairs: NDArray[np.int64], n: int) -> None:
    """Append both directions of edges to the files of the ranges that they start in."""
    source, target = np.concatenate([pairs, pairs[::-1]], axis=1)
    key = source * n + target
    bucket = source // ROWS
    order = np.argsort(bucket, kind="stable")
    ends = np.searchsorted(bucket[order], np.arange(-(-n // ROWS)), side="right")
    for number, part in enumerate(np.split(key[order], ends[:-1])):
        with (folder / str(number)).open("ab") as file:
            part.tofile(file)


def _write_rows(folder: Path, temporary: Path, n: int) -> None:
    """Sort the rows of each range, and write the CSR structure."""
    rowptr = np.zeros(n + 1, dtype=np.int64)
    with (temporary / "col").open("wb") as file:
        for number in range(-(-n // ROWS)):
            bucket = temporary / str(number)
            key = np.unique(np.fromfile(bucket, dtype=np.int64))
            bucket.unlink()
            start = number * ROWS
            count = np.bincount(key // n - start, minlength=min(ROWS, n - start))
            rowptr[start + 1 : start + 1 + len(count)] = count
            (key % n).astype(np.int32).tofile(file)
    np.cumsum(rowptr, out=rowptr)
    small = len(rowptr) and rowptr[-1] < 2**31
    np.save(folder / "graph.rowptr.npy", rowptr.astype(np.int32 if small else np.int64))
    col = open_memmap(folder / "graph.col.npy", "w+", np.int32, (int(rowptr[-1]),))
    drawn = np.memmap(temporary / "col", np.int32, "r")
    for start in range(0, len(col), 8 * EDGES):
        col[start : start + 8 * EDGES] = drawn[start : start + 8 * EDGES]
    col.flush()


def _write_features(folder: Path, n: int, rng: np.random.Generator) -> None:
    label = rng.permutation(np.arange(-(-n // COMMUNITY)) % CLASSES)
    mean = rng.standard_normal((CLASSES, FEATURES), dtype=np.float32)
    mean *= SIGNAL / np.linalg.norm(mean, axis=1, keepdims=True)
    x = open_memmap(folder / "graph.x.npy", "w+", np.float32, (n, FEATURES))
    y = open_memmap(folder / "graph.y.npy", "w+", np.int64, (n,))
    for start in range(0, n, ROWS):
        rows = slice(start, min(start + ROWS, n))
        y[rows] = label[np.arange(rows.start, rows.stop) // COMMUNITY]
        x[rows] = rng.standard_normal((rows.stop - start, FEATURES), dtype=np.float32)
        x[rows] += mean[y[rows]]
    x.flush()
    y.flush()
