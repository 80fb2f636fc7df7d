"""What experiments cost: measured on the runs that have finished."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from typing import NamedTuple

from eegnn.studies.quantities import RunRecord
from eegnn.train.config import Config


class Cost(NamedTuple):
    """The time of some runs on one core.

    Args:
        minutes: of the runs that can be timed.
        timed: how many these are: runs of the same data set and model have finished.
        runs: how many there are in all.
    """

    minutes: float
    timed: int
    runs: int

    def describe(self, estimate: float) -> str:
        """Return the minutes, with ``+`` if not all runs are timed; if none, ``~`` and a guess."""
        if self.runs and not self.timed:
            return f"~{float(f'{estimate:.2g}'):,g}"
        return f"{self.minutes:,.1f}".removesuffix(".0") + "+" * (self.timed < self.runs)


def cost(wanted: Iterable[Config], finished: Iterable[RunRecord]) -> Cost:
    """Sum the times of runs; one takes as long as finished ones of its data set and model do."""
    seconds: dict[tuple[str, str], list[float]] = {}
    for record in finished:
        place = record["config"]["dataset"], record["config"]["model"]
        seconds.setdefault(place, []).append(record["seconds"])
    places = [(config.dataset, config.model) for config in wanted]
    timed = [statistics.fmean(seconds[place]) for place in places if place in seconds]
    return Cost(sum(timed) / 60, len(timed), len(places))
