"""`eegnn datasets`: the data sets as rows for programs, and as a table for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console, Group
from rich.table import Table

from eegnn.data.dataset import DataSet
from eegnn.data.registry import DATASETS, find, open_dataset
from eegnn.data.statistics import differences, statistics

Row = dict[str, Any]

NUMBERS = ("splits", "graphs", "nodes", "edges", "features", "classes", "h edge", "h adj")
COLUMNS = ("name", "level", "metric", *NUMBERS, "licence", "source", "where", "check")
#: The fields of columns that are called otherwise.
FIELDS = {
    "h edge": "homophily", "h adj": "adjusted_homophily", "source": "citation", "where": "place",
}  # fmt: skip
EXPLANATION = (
    "edges: both directions. h edge, h adj: homophily of edges, and the same corrected for chance. "
    "Of a set of graphs: nodes and edges of a mean graph."
)
# Left out one after the other where a terminal is too narrow; a single data set is shown in full.
OPTIONAL = ("source", "licence", "classes", "features", "level", "graphs", "splits", "metric")


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
        then ``missing`` names it. With ``measure`` also ``differences``: a list of
        ``{figure, published, found, known}``, empty if all is as published, ``None`` if it was
        not opened; ``known`` ones are errors of the publication that the registry records.
    """
    return [_row(find(name), root, measure) for name in names or DATASETS]


def table_of(rows: Sequence[Row], width: int = 160) -> Group:
    """Make a table of the rows of :func:`dataset_rows`; a single data set is shown in full.

    Differences from the published figures follow below, a line each. Where the terminal has less
    than ``width`` characters, columns are left out.
    """
    if len(rows) == 1:
        return Group(_details(rows[0]))
    columns = [column for column in COLUMNS if column != "check" or "differences" in rows[0]]
    for left_out in ("", *OPTIONAL):
        columns = [column for column in columns if column != left_out]
        table = _table(rows, columns)
        if Console(width=10_000).measure(table).maximum <= width:
            break
    notes = [f"{row['name']}: {text}" for row in rows for text in _differences(row)]
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
            except ImportError as error:  # so that the other data sets are still shown
                return {**row, "place": "needs a package", "missing": str(error)}
            row.update(found)
            row["differences"] = [item._asdict() for item in differences(entry.name, found)]
    return row


def _table(rows: Sequence[Row], columns: Sequence[str]) -> Table:
    table = Table(box=None, pad_edge=False)
    for column in columns:
        table.add_column(column, justify="right" if column in NUMBERS else "left", no_wrap=True)
    for row in rows:
        table.add_row(*(_cell(row, column) for column in columns))
    return table


def _details(row: Row) -> Table:
    table = Table(box=None, pad_edge=False, show_header=False)
    for field, value in row.items():
        if field != "differences" and value not in ("", None):
            table.add_row(field.replace("_", " "), _text(value))
    if "differences" in row:
        table.add_row("check", "\n".join(_differences(row)) or _verdict(row))
    return table


def _cell(row: Row, column: str) -> str:
    if column == "check":
        return _verdict(row)
    if column in ("nodes", "edges"):
        return _size(row, column)
    return _text(row.get(FIELDS.get(column, column)))


def _size(row: Row, name: str) -> str:
    """The number of nodes, or of edges in both directions, also where the publication counts them
    once: of the only graph, or the mean over several."""
    for field in ("undirected_edges", "mean_undirected_edges"):
        if field in row:
            row = {field.replace("undirected_", ""): 2 * row[field], **row}
    if "graphs" not in row:
        return _text(row.get(name))
    mean = row[f"mean_{name}"] if f"mean_{name}" in row else row[name] / row["graphs"]
    return f"{mean:,.1f}"


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
