"""Tables: cells beside the numbers of the paper, and results by group and row."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import TypeVar

from eegnn.studies.configs import Runs
from eegnn.studies.experiment import Cell, CellResult, Cells, Score, Table
from eegnn.studies.quantities import Quantity

Key = TypeVar("Key", bound=Hashable)
#: The numbers of a table of the paper by row and column, as far as there are any.
PaperTable = Mapping[str, Mapping[str, Score]]


def paper_cells(
    group: str,
    paper: PaperTable,
    quantities: Mapping[str, Quantity],
    runs: Callable[[str, str], Runs],
    tuned: str | None = None,
) -> Cells:
    """Return a cell for each number of the paper that there are runs for.

    ``runs`` returns those of a row and a column; none where there are no settings for them.
    ``tuned`` is that of the cells.
    """
    for row in paper:
        for column, score in paper[row].items():
            if configs := runs(row, column):
                yield Cell(group, row, column, quantities[column], configs, score, tuned=tuned)


def quoted_cells(
    group: str, paper: PaperTable, columns: Mapping[str, Quantity]
) -> tuple[Cell, ...]:
    """Return the cells of rows that are only quoted: they have no runs."""
    return tuple(
        Cell(group, row, column, columns[column], paper=score)
        for row in paper
        for column, score in paper[row].items()
    )


def row_cells(
    group: str,
    row: str,
    quantities: Mapping[str, Quantity],
    configs: Runs,
    paper: Mapping[str, Score | None] | None = None,
) -> Cells:
    """Return the cells of a row whose columns read several quantities from the same runs."""
    return [
        Cell(group, row, column, quantity, configs, (paper or {}).get(column))
        for column, quantity in quantities.items()
    ]


def by_group(table: Table) -> dict[str, list[CellResult]]:
    """Return the results of each group, in the order of the table."""
    return _split(table, lambda cell: cell.group)


def by_row(table: Table) -> dict[str, list[CellResult]]:
    """Return the results of each row, in the order of the table."""
    return _split(table, lambda cell: cell.row)


def by_line(table: Table) -> dict[tuple[str, str], list[CellResult]]:
    """Return the results of each row of each group, in the order of the table."""
    return _split(table, lambda cell: (cell.group, cell.row))


def _split(table: Table, key: Callable[[Cell], Key]) -> dict[Key, list[CellResult]]:
    parts: dict[Key, list[CellResult]] = {}
    for result in table:
        parts.setdefault(key(result.cell), []).append(result)
    return parts
