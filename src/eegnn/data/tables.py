"""A table of nodes and a table of edges become the arrays that an ``.npz`` file would hold."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eegnn._check import listed, shown
from eegnn.data.arrays import Arrays
from eegnn.data.splits import MASKS, PARTS

ENDS = ("source", "target")


@dataclass(frozen=True)
class Table:
    """Columns of equal length, by name."""

    source: str  #: the file, for error messages
    columns: dict[str, list[Any]]  #: text, numbers, or ``None`` where there is nothing
    place: Callable[[int], str]  #: what error messages call a row, such as ``line 2``

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), []))

    def error(self, row: int, text: str) -> ValueError:
        """Return an error that names the file and the place of a row."""
        return ValueError(f"{self.source}, {self.place(row)}: {text}")

    def words(self, name: str) -> list[str]:
        """Return a column as text without surrounding blanks; empty text where there is nothing."""
        return ["" if cell is None else str(cell).strip() for cell in self.columns[name]]

    def numbers(self, name: str) -> NDArray[Any]:
        """Return a column as integers where all cells are written so, else as ``float64``."""
        found = []
        for row, cell in enumerate(self.columns[name]):
            try:
                number = _number(cell)
                if not math.isfinite(number):
                    raise ValueError
            except (TypeError, ValueError, OverflowError):
                wrong = f"must be a finite number, got {shown(cell)}"
                if cell is None or cell == "":
                    wrong = "is empty"
                raise self.error(row, f"column {shown(name)} {wrong}") from None
            found.append(number)
        return np.array(found)

    def features(self, names: Sequence[str]) -> NDArray[np.float64]:
        """Return columns side by side, ``[rows, len(names)]``."""
        found = np.empty((len(self), len(names)))
        for index, name in enumerate(names):
            found[:, index] = self._floats(name)
        return found

    def _floats(self, name: str) -> NDArray[Any]:
        with suppress(TypeError, ValueError):  # fast, but it names no cell and knows no "true"
            found = np.array(self.columns[name], dtype=np.float64)
            if found.ndim == 1 and np.isfinite(found).all():
                return found
        return self.numbers(name)


def _number(cell: Any) -> Any:
    if not isinstance(cell, str):
        return cell
    word = cell.strip().lower()
    if word in ("true", "false"):
        return int(word == "true")
    try:
        return int(word)
    except ValueError:
        return float(word)


def arrays_from_tables(nodes: Table, edges: Table) -> Arrays:
    """Make the arrays of :func:`eegnn.data.files.read_problem`, which describes the columns."""
    labels, splits = _numbered(nodes, "y"), _numbered(nodes, "split")
    masks = {
        mask: name
        for part, mask in zip(PARTS, MASKS, strict=True)
        for name in (part, mask)
        if name in nodes.columns
    }
    if masks and splits:
        names = listed([*splits, *masks.values()])
        raise ValueError(f"{nodes.source}: {names} all give a split; leave one way of it")
    others = {"id", *labels, *splits, *masks.values()}
    arrays: Arrays = {
        "x": nodes.features([name for name in nodes.columns if name not in others]),
        "edge_index": _edge_index(nodes, edges),
    }
    if attributes := [name for name in edges.columns if name not in ENDS]:
        arrays["edge_attr"] = edges.features(attributes)
    if labels:
        y = np.stack([nodes.numbers(name) for name in labels], axis=1)
        arrays["y"] = y if len(labels) > 1 else y[:, 0]
    for mask, name in masks.items():
        given = nodes.numbers(name)
        arrays[mask] = given.astype(np.bool_) if np.isin(given, (0, 1)).all() else given
    if splits:
        words = np.stack([_parts(nodes, name) for name in splits], axis=1)
        arrays |= {mask: words == part for part, mask in zip(PARTS, MASKS, strict=True)}
    return arrays


def _numbered(table: Table, name: str) -> list[str]:
    """Names of the columns ``name``, ``name_0``, ``name_1`` …, in the order of the table."""
    return [column for column in table.columns if re.fullmatch(rf"{name}(_\d+)?", column)]


def _parts(nodes: Table, name: str) -> NDArray[np.str_]:
    words = nodes.words(name)
    for row, word in enumerate(words):
        if word not in ("", *PARTS):
            must = "must be train, val, test or empty"
            raise nodes.error(row, f"column {shown(name)} {must}, got {shown(word)}")
    return np.array(words, dtype=np.str_)


def _edge_index(nodes: Table, edges: Table) -> NDArray[np.int64]:
    ids = nodes.words("id") if "id" in nodes.columns else list(map(str, range(len(nodes))))
    row_of: dict[str, int] = {}
    for row, name in enumerate(ids):
        if row_of.setdefault(name, row) != row:
            raise nodes.error(row, f"id {shown(name)} must not occur twice")
    found = np.empty((2, len(edges)), dtype=np.int64)
    for index, end in enumerate(ENDS):
        if end not in edges.columns:
            there = listed(edges.columns)
            raise ValueError(f"{edges.source}: column {end!r} is missing; there is {there}")
        for row, name in enumerate(edges.words(end)):
            if name not in row_of:
                what = "id" if "id" in nodes.columns else "row number, counted from 0,"
                raise edges.error(row, f"{end} {shown(name)} is no {what} of {nodes.source}")
            found[index, row] = row_of[name]
    return found
