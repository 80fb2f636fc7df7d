"""Statements about a table of results, checked against its numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from eegnn.studies.experiment import Finding, Table


def means(table: Table) -> dict[tuple[str, str, str], float | None]:
    """Return the mean of each cell by group, row and column; ``None`` where there is no run."""
    return {(r.cell.group, r.cell.row, r.cell.column): r.mean for r in table}


def check(
    claim: str, values: Sequence[float | None], holds: Callable[..., bool], detail: str = ""
) -> Finding:
    """Check a claim about some numbers; it stays open where one of them is missing.

    ``holds`` takes the numbers and decides. ``detail`` is formatted with them and follows the
    claim, such as ``" ({:.1f})"``.
    """
    if any(value is None for value in values):
        return Finding(claim, None)
    return Finding(claim + detail.format(*values), holds(*values))


def listing(names: Iterable[str], number: str = "{:.2f}") -> str:
    """Return a format of named numbers for :func:`check`, such as ``"a {:.2f}, b {:.2f}"``."""
    return ", ".join(f"{name} {number}" for name in names)


def statistic(
    function: Callable[[list[float]], float], values: Iterable[float | None]
) -> float | None:
    """Return a statistic of the numbers, such as their ``max``; ``None`` if one is missing."""
    numbers = list(values)
    known = [number for number in numbers if number is not None]
    return function(known) if len(known) == len(numbers) else None
