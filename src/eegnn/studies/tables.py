"""Cells that stand beside the numbers of a table of the paper."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from eegnn.studies.configs import Runs
from eegnn.studies.experiment import Cell, Score
from eegnn.studies.quantities import Quantity

#: A number of the paper with its standard deviation; ``None`` where it has none.
Printed = tuple[float, float] | None


def paper_table(
    columns: Iterable[str], rows: Mapping[str, Sequence[Printed]]
) -> dict[tuple[str, str], Score]:
    """Turn a table of the paper into scores by row and column."""
    columns = tuple(columns)
    return {
        (row, column): Score(*number)
        for row, numbers in rows.items()
        for column, number in zip(columns, numbers, strict=True)
        if number is not None
    }


def paper_cells(
    group: str,
    paper: Mapping[tuple[str, str], Score],
    quantities: Mapping[str, Quantity],
    runs: Callable[[str, str], Runs],
) -> list[Cell]:
    """Return a cell for each number of the paper that there are runs for.

    Args:
        group: of the cells.
        paper: its numbers by row and column.
        quantities: by column.
        runs: those of a row and a column; none where there are no settings for them.
    """
    return [
        Cell(group, row, column, quantities[column], configs, score)
        for (row, column), score in paper.items()
        if (configs := runs(row, column))
    ]


def row_cells(
    group: str,
    row: str,
    quantities: Mapping[str, Quantity],
    configs: Runs,
    paper: Mapping[str, Score | None] | None = None,
) -> list[Cell]:
    """Return the cells of a row whose columns read several quantities from the same runs.

    Args:
        group, row: of the cells.
        quantities: by column.
        configs: the runs.
        paper: its numbers by column, as far as it has any.
    """
    return [
        Cell(group, row, column, quantity, configs, (paper or {}).get(column))
        for column, quantity in quantities.items()
    ]
