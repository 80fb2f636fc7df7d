"""How long a trained model takes for all its test data."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from eegnn.analysis.run import open_run
from eegnn.studies.study import Line, Measurement, Quantity

#: Timed passes, and seconds after which three will do.
PASSES, ENOUGH = 30, 20.0


def look(run: Path, root: Path | None) -> float:
    """The median of the seconds of a forward pass, by the model's own rule of leaving."""
    model, batches = open_run(run, root)
    parts = batches.part("test")
    inputs = [(units.x, units.adj, units.edge_attr) for units in parts]
    seconds: list[float] = []
    while len(seconds) <= PASSES:  # the first one is to warm up
        if len(seconds) > 3 and sum(seconds) > ENOUGH:
            break
        start = time.perf_counter()
        for x, adj, edge_attr in inputs:
            model.predict(x, adj, edge_attr)
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds[1:])


def _read(line: Line) -> float:
    return 1000 * float(line[STOPWATCH.field])


STOPWATCH = Measurement("inference_seconds", look)
MILLISECONDS = Quantity("milliseconds of inference", _read, "lower", 1)
