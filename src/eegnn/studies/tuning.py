"""Settings chosen by validation: which of the runs of a cell count."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from eegnn.studies.experiment import Cell, CellResult
from eegnn.studies.quantities import RunRecord


def cell_result(cell: Cell, records: Sequence[RunRecord]) -> CellResult:
    """Return a cell with its runs; where an option is tuned, with those of its best value.

    That is the value with the best mean validation score among those with the fewest runs that
    failed. While runs are missing it is the best so far.
    """
    runs = tuple(record for record in records if "failed" not in record)
    failures = tuple(record for record in records if "failed" in record)
    if cell.tuned is None or not runs:
        return CellResult(cell, runs, failures)
    sign = -1 if cell.quantity.better == "lower" else 1

    def merit(value: Any) -> tuple[int, float]:
        scores = [run["val"] for run in runs if cell.tuned_value(run) == value]
        failed = sum(cell.tuned_value(run) == value for run in failures)
        return -failed, sign * statistics.fmean(scores)

    best = max({cell.tuned_value(run) for run in runs}, key=merit)
    chosen = tuple(run for run in runs if cell.tuned_value(run) == best)
    others = tuple(run for run in runs if cell.tuned_value(run) != best)
    return CellResult(cell, chosen, failures, others=others)
