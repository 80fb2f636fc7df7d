"""Your own data: files in one of several formats become a problem.

Every reader returns the same named arrays, which are checked in one place
(:mod:`eegnn.data.npz`).

A split divides the nodes of a single graph (V = N), or, with ``ptr``, the graphs (V = G).
Without one, 60/20/20 % are chosen at random with ``split`` as the seed. Other keys are ignored.

Features that are too many for memory have a file of their own: without ``x`` in ``graph.npz``,
they are those of ``graph.x.npy`` beside it, ``float32``, made by ``numpy.save`` or piece by
piece with ``numpy.lib.format.open_memmap``. It is mapped into memory, not read.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Collection, Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import torch
from torch_geometric.data import Data
from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
from torch_geometric.data.storage import GlobalStorage

from eegnn._check import listed, reason
from eegnn.data.arrays import Arrays, NamedArrays, map_array, read_arrays
from eegnn.data.npz import arrays_from_pyg, graphs_from_arrays, problem_from_arrays
from eegnn.data.problem import Metric, Problem
from eegnn.data.tables import ENDS, Table, arrays_from_tables
from eegnn.io import check_size, load_tensors
from eegnn.typing import Level, Task


def read_problem(
    path: str | PathLike[str],
    split: int = 0,
    level: Level | None = None,
    task: Task | None = None,
    metric: Metric | None = None,
) -> Problem:
    """Read a problem from a file, or from a folder of two tables.

    =================== ========================================================================
    path                what
    =================== ========================================================================
    a folder            ``nodes.csv`` and ``edges.csv``, or ``.parquet``
    ``.graphml``        the same columns, as attributes of nodes and edges
    ``.edges``,         lines of two node numbers, counted from 0, and perhaps a third number, a
    ``.txt``, ``.csv``  feature of the edge; blanks or commas between them; no labels
    ``.pt``             a PyG ``Data``, ``data.to_dict()``, or a list of ``Data``, by ``torch.save``
    ``.npz``            arrays, by :func:`~eegnn.data.npz.write_npz` or ``numpy.savez(path, x=…)``
    =================== ========================================================================

    Columns of the tables; all others are features, and must hold numbers:

    =================== ========================================================================
    column              what
    =================== ========================================================================
    ``id``              of nodes, optional: any text or number, each once
    ``y``               of nodes: a class, 0 … C−1, or a number; several are ``y_0``, ``y_1`` …
    ``split``           of nodes, optional: ``train``, ``val``, ``test`` or empty; several splits
                        are ``split_0``, ``split_1`` …
    ``train``           instead, with ``val`` and ``test``: 0 or 1; ``train_mask`` … will do too
    ``source, target``  of edges: an ``id``; without ids, the row in the table, counted from 0
    =================== ========================================================================

    Arrays of an ``.npz`` file, and attributes of ``Data``:

    ==================== ============== ============================================================
    key                  shape          what
    ==================== ============== ============================================================
    ``x``                [N, F] float   features of all nodes
    ``edge_index``       [2, E] int     edges, in PyG's convention, with the row numbers of ``x``
    ``y``                [U] or [U, C]  labels of nodes (U = N) or of graphs (U = G)
    ``ptr``              [G + 1] int    for many graphs: graph g has the nodes ptr[g] … ptr[g+1]−1
    ``edge_attr``        [E, D] float   optional: features of edges
    ``train_mask``       [V] or [V, S]  optional, with ``val_mask``, ``test_mask``: bool, S splits
    ``train``            [·] int        instead, with ``val`` and ``test``: indices (``.npz`` only)
    ``num_classes``      [] int         optional: if not every class occurs (``.npz`` only)
    ``edge_label_index`` [2, P] int     pairs of nodes to predict for; V = P pairs are split
    ``edge_label``       [P] or [P, C]  their labels instead of ``y``; 0.0 and 1.0 for links
    ==================== ============== ============================================================

    Args:
        path: the file or folder. Nothing in it is ever executed; Python objects are refused.
        split: which split of several.
        level: default: ``"edge"`` with ``edge_label_index``, else what ``y`` has as many rows as.
        task: default: ``"classification"`` for integers, ``"multilabel"`` for a matrix of 0 and 1,
            else ``"regression"``.
        metric: default: ``"accuracy"`` or, for two classes, ``"roc_auc"``; ``"ap"`` for several
            labels; ``"mae"`` for regression.
    """
    return problem_from_arrays(Path(path).stem, _read(Path(path)), split, level, task, metric)


def read_graphs(path: str | PathLike[str], categorical: Collection[str] = ()) -> list[Data]:
    """Read only the graphs of a file, for predictions: neither labels nor a split are needed.

    Args:
        path: as in :func:`read_problem`.
        categorical: which of ``"x"`` and ``"edge_attr"`` begin with categories, and so may hold
            integers.
    """
    return graphs_from_arrays(_read(Path(path)), categorical)


def _read(path: Path) -> NamedArrays:
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist")
    ending = "folder" if path.is_dir() else path.suffix.lower()
    if ending not in FORMATS:
        known = ", ".join(key for key in FORMATS if key != "folder")
        raise ValueError(
            f"{path} must be a folder with nodes.csv and edges.csv, or a file that ends in {known}"
        )
    try:
        return NamedArrays(str(path), FORMATS[ending](path))
    except (ValueError, TypeError, OSError, ImportError):
        raise
    except Exception as error:  # bytes from anywhere make parsers raise anything
        raise ValueError(f"{path} is damaged ({type(error).__name__}: {reason(error)})") from error


def _read_npz(path: Path) -> Arrays:
    arrays, features = read_arrays(path), path.with_suffix(".x.npy")
    if not features.exists():
        return arrays
    if "x" in arrays:
        raise ValueError(f"{path}: x is in this file and in {features}: remove one of them")
    return {"x": map_array(features), **arrays}


def _read_pt(path: Path) -> Arrays:
    # What PyG's Data consists of; load_tensors refuses everything else that is not a tensor.
    with torch.serialization.safe_globals([Data, DataEdgeAttr, DataTensorAttr, GlobalStorage]):
        found = load_tensors(path, str(path))
    graphs = Data.from_dict(found) if isinstance(found, dict) else found
    if not isinstance(graphs, Data | list):
        raise TypeError(
            f"{path} must hold a PyG Data or a list of them, got {type(graphs).__name__}"
        )
    listed = [graphs] if isinstance(graphs, Data) else graphs
    values = [value for graph in listed if isinstance(graph, Data) for _, value in graph]
    # A tensor whose stride is 0 has any number of rows in a few bytes.
    size = sum(value.nbytes for value in values if isinstance(value, torch.Tensor))
    check_size(str(path), size, path.stat().st_size)
    return arrays_from_pyg(str(path), graphs).arrays


def _read_folder(path: Path) -> Arrays:
    return arrays_from_tables(_read_table(path, "nodes"), _read_table(path, "edges"))


def _read_table(folder: Path, name: str) -> Table:
    found = [ending for ending in TABLES if (folder / f"{name}{ending}").is_file()]
    if len(found) != 1:
        wanted = " or ".join(f"{name}{ending}" for ending in TABLES)
        holds = "both" if found else "neither"
        raise ValueError(f"the folder {folder} must hold {wanted}, but it holds {holds}")
    return TABLES[found[0]](folder / f"{name}{found[0]}")


def _read_csv(path: Path) -> Table:
    rows = _text_rows(path, lambda lines: csv.reader(lines))
    header = [name.strip() for name in rows[0][1]] if rows else []
    if "" in header:
        raise ValueError(f"{path}: a column has no name (pandas writes none with index=False)")
    return _table(path, header, rows[1:])


def _read_edge_list(path: Path) -> Arrays:
    rows = _text_rows(path, lambda lines: (line.replace(",", " ").split() for line in lines))
    rows = [(line, cells) for line, cells in rows if cells[0][0] not in "#%"]
    if rows and rows[0][1][0][0].isalpha():  # a header
        del rows[0]
    if not rows or len(rows[0][1]) not in (2, 3):
        raise ValueError(f"{path} must hold lines of two or three columns, as an edge list")
    edges = _table(path, [*ENDS, "weight"][: len(rows[0][1])], rows)
    last = max(edges.numbers(end).max() for end in ENDS)
    check_size(str(path), 100 * int(last), path.stat().st_size)  # a node takes about 100 bytes
    nodes = Table(str(path), {"id": list(range(int(last) + 1))}, str)
    return arrays_from_tables(nodes, edges)


def _text_rows(
    path: Path, split: Callable[[Iterable[str]], Iterable[list[str]]]
) -> list[tuple[int, list[str]]]:
    """The numbers and the cells of those lines that are not empty."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            return [(line, cells) for line, cells in enumerate(split(file), start=1) if cells]
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{path} is not a table in UTF-8: {reason(error)}") from error


def _table(path: Path, header: list[str], rows: list[tuple[int, list[str]]]) -> Table:
    if len(set(header)) != len(header):
        raise ValueError(f"{path}: two columns have the same name, there is {listed(header)}")
    for line, cells in rows:
        if len(cells) != len(header):
            raise ValueError(f"{path}, line {line}: expected {len(header)} cells, got {len(cells)}")
    columns: dict[str, list[Any]] = {
        name: [cells[index] for _, cells in rows] for index, name in enumerate(header)
    }
    return Table(str(path), columns, lambda row: f"line {rows[row][0]}")


def _read_parquet(path: Path) -> Table:
    parquet = require_parquet()
    try:
        about = parquet.read_metadata(path)
        # A Python number takes about 32 bytes.
        check_size(str(path), 32 * about.num_rows * about.num_columns, path.stat().st_size)
        columns = parquet.read_table(path).to_pydict()
    except (ValueError, OSError) as error:
        raise ValueError(f"{path} is damaged, or no Parquet file: {reason(error)}") from error
    return Table(str(path), columns, lambda row: f"row {row}")


def require_parquet() -> Any:
    """Import ``pyarrow.parquet``, or say how to install it."""
    try:
        from pyarrow import parquet
    except ImportError as error:
        raise ImportError("Parquet needs pyarrow: pip install 'eegnn[parquet]'") from error
    return parquet


def _read_graphml(path: Path) -> Arrays:
    """Read nodes and edges; an undirected edge becomes two, one for each direction."""
    try:
        root = ElementTree.parse(path).getroot()
    except ElementTree.ParseError as error:
        raise ValueError(f"{path} is not GraphML: {reason(error)}") from error
    graphs = root.findall("{*}graph")
    if len(graphs) != 1:
        raise ValueError(f"{path} must hold one graph, got {len(graphs)}")
    nodes, edges = graphs[0].findall("{*}node"), graphs[0].findall("{*}edge")
    ids = [node.get("id") for node in nodes]
    ends = [[edge.get(end) for edge in edges] for end in ENDS]
    features = _attributes(path, root, "edge", edges)
    if graphs[0].get("edgedefault") == "undirected":
        ends = [ends[0] + ends[1], ends[1] + ends[0]]
        features = {name: cells * 2 for name, cells in features.items()}
    columns = {**features, **dict(zip(ENDS, ends, strict=True))}
    return arrays_from_tables(
        Table(
            str(path),
            _attributes(path, root, "node", nodes) | {"id": ids},
            lambda i: f"node {ids[i]}",
        ),
        Table(str(path), columns, lambda i: f"edge {i % len(edges)}"),
    )


def _attributes(
    path: Path, root: ElementTree.Element, kind: str, elements: Sequence[ElementTree.Element]
) -> dict[str, list[str | None]]:
    """The columns of the attributes that any node, or edge, has, in the order of the elements."""
    keys = {
        key.get("id"): (key.get("attr.name"), key.findtext("{*}default"))
        for key in root.findall("{*}key")
        if key.get("for") in (kind, "all")
    }
    columns: dict[str, list[str | None]] = {}
    for row, element in enumerate(elements):
        for data in element.findall("{*}data"):
            name, default = keys.get(data.get("key"), (None, None))
            if name and name not in columns:
                check_size(str(path), 64 * len(elements) * len(columns), path.stat().st_size)
                columns[name] = [default] * len(elements)
            if name:
                columns[name][row] = data.text
    return columns


#: What each ending is read by, and a folder.
FORMATS: dict[str, Callable[[Path], Arrays]] = {
    "folder": _read_folder,
    ".npz": _read_npz,
    ".pt": _read_pt,
    ".graphml": _read_graphml,
    ".edges": _read_edge_list,
    ".txt": _read_edge_list,
    ".csv": _read_edge_list,
}
#: What the tables of a folder are read by.
TABLES: dict[str, Callable[[Path], Table]] = {".csv": _read_csv, ".parquet": _read_parquet}
