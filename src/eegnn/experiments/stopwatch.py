"""How long a trained model takes for all its test data."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from eegnn.analysis.run import open_run
from eegnn.experiments.study import Line, Measurement, Quantity

PASSES = 30


def look(run: Path, root: Path | None) -> float:
    """The median of the seconds of a forward pass, by the model's own rule of leaving."""
    model, batches = open_run(run, root)
    parts = batches.part("test")
    inputs = [(units.x, units.adj, units.edge_attr) for units in parts]
    seconds = []
    for _ in range(PASSES + 1):  # the first one is to warm up
        start = time.perf_counter()
        for x, adj, edge_attr in inputs:
            model.predict(x, adj, edge_attr)
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds[1:])


def _read(line: Line) -> float:
    return 1000 * float(line[STOPWATCH.field])


STOPWATCH = Measurement("inference_seconds", look)
MILLISECONDS = Quantity("milliseconds of inference", _read, "lower", 1)
