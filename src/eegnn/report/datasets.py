"""The data sets as a table for people, and as rows for programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console, Group
from rich.table import Table

from eegnn.data.dataset import DataSet
from eegnn.data.registry import DATASETS, find, open_dataset
from eegnn.data.statistics import differences, statistics

Row = dict[str, Any]

NUMBERS = ("splits", "graphs", "nodes", "edges", "features", "classes", "h edge", "h adj")
EXPLANATION = (
    "edges: both directions. h edge, h adj: homophily of edges, and the same corrected for chance. "
    "Of a set of graphs: nodes and edges of a mean graph."
)
# What a narrow terminal can do without, in this order; the sheet of a single data set has it all.
DISPENSABLE = ("source", "licence", "classes", "features", "level", "graphs", "splits", "metric")


def dataset_rows(
    names: Sequence[str] | None = None, root: Path | None = None, measure: bool = False
) -> list[Row]:
    """Describe data sets.

    Args:
        names: which; ``None`` for all.
        root: the data folder.
        measure: whether to open those that need no network, count, and compare with the published
            figures. Without it the published figures are shown, and nothing is opened.

    Returns:
        For each, what the registry knows, its figures, and ``place``: ``"on disk"``, ``"in
        mirror"``, ``"needs network"``, or, when it was to be opened, ``"needs a package"``, and
        then ``missing`` says which. With ``measure`` also ``differences``: a list of
        ``{figure, published, found, known}``, empty if all is as published, ``None`` if it was
        not opened; ``known`` ones are slips of the publication, the others are alarms.
    """
    return [_row(find(name), root, measure) for name in names or DATASETS]


def datasets_table(
    names: Sequence[str] | None = None,
    root: Path | None = None,
    measure: bool = False,
    width: int = 160,
) -> Group:
    """Make a table of data sets.

    Args:
        names, root, measure: as for :func:`dataset_rows`.
        width: as for :func:`table_of`.
    """
    return table_of(dataset_rows(names, root, measure), width)


def table_of(rows: Sequence[Row], width: int = 160) -> Group:
    """Lay out the rows of :func:`dataset_rows`: a line each, or, for a single one, all of it.

    Below the lines, each difference from the published figures has a line of its own.

    Args:
        rows: the data sets.
        width: characters there are; if they are few, columns are left out.
    """
    if len(rows) == 1:
        return Group(_sheet(rows[0]))
    columns = [column for column in COLUMNS if column != "check" or "differences" in rows[0]]
    for dispensable in ("", *DISPENSABLE):
        columns = [column for column in columns if column != dispensable]
        table = _list(rows, columns)
        if Console(width=10_000).measure(table).maximum <= width:
            break
    notes = [f"{row['name']}: {unlike}" for row in rows for unlike in _differences(row)]
    notes += [row["missing"] for row in rows if "missing" in row]
    return Group(table, f"\n{EXPLANATION}", *notes)


def _row(entry: DataSet, root: Path | None, measure: bool) -> Row:
    row: Row = {
        "name": entry.name,
        "title": entry.title,
        "family": entry.family,
        "level": entry.level,
        "task": entry.task,
        "metric": entry.metric,
        "splits": entry.num_splits,
        **entry.figures,
        "licence": entry.licence,
        "citation": entry.citation,
        "url": entry.url,
        "remark": entry.remark,
        "place": entry.place(root),
    }
    if measure:
        row["differences"] = None
        if row["place"] != "needs network":
            try:
                found = statistics(open_dataset(entry.name, root=root))
            except ImportError as error:  # the others can be counted all the same
                return {**row, "place": "needs a package", "missing": str(error)}
            row.update(found)
            row["differences"] = [unlike._asdict() for unlike in differences(entry.name, found)]
    return row


def _list(rows: Sequence[Row], columns: Sequence[str]) -> Table:
    table = Table(box=None, pad_edge=False)
    for column in columns:
        table.add_column(column, justify="right" if column in NUMBERS else "left", no_wrap=True)
    for row in rows:
        table.add_row(*(COLUMNS[column](row) for column in columns))
    return table


def _sheet(row: Row) -> Table:
    table = Table(box=None, pad_edge=False, show_header=False)
    for field, value in row.items():
        if field != "differences" and value not in ("", None):
            table.add_row(field.replace("_", " "), _text(value))
    if "differences" in row:
        table.add_row("check", "\n".join(_differences(row)) or _verdict(row))
    return table


def _nodes(row: Row) -> str:
    return _size(row, "nodes")


def _edges(row: Row) -> str:
    """Count both directions, whichever way the publication counts."""
    twice = {
        name.replace("undirected_", ""): 2 * row[name]
        for name in ("undirected_edges", "mean_undirected_edges")
        if name in row
    }
    return _size({**twice, **row}, "edges")


def _size(row: Row, name: str) -> str:
    """Give the size of the one graph, or of the mean of several."""
    if "graphs" not in row:
        return _text(row.get(name))
    mean = row[f"mean_{name}"] if f"mean_{name}" in row else row[name] / row["graphs"]
    return f"{mean:,.1f}"


def _field(name: str) -> Callable[[Row], str]:
    return lambda row: _text(row.get(name))


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.2f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _verdict(row: Row) -> str:
    if row["differences"] is None:
        return "not opened"
    known = [difference["known"] for difference in row["differences"]]
    if not all(known):
        return "differs"
    return "known slip" if known else "as published"


def _differences(row: Row) -> list[str]:
    """Describe what is not as published, a sentence each."""
    return [
        f"{difference['figure'].replace('_', ' ')} {_text(difference['found']) or 'unknown'}, "
        f"published {_text(difference['published'])}{' (a known slip)' * difference['known']}"
        for difference in row.get("differences") or []
    ]


COLUMNS: dict[str, Callable[[Row], str]] = {
    "name": _field("name"),
    "level": _field("level"),
    "metric": _field("metric"),
    "splits": _field("splits"),
    "graphs": _field("graphs"),
    "nodes": _nodes,
    "edges": _edges,
    "features": _field("features"),
    "classes": _field("classes"),
    "h edge": _field("homophily"),
    "h adj": _field("adjusted_homophily"),
    "licence": _field("licence"),
    "source": _field("citation"),
    "where": _field("place"),
    "check": _verdict,
}
