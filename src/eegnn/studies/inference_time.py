"""How long a trained model takes for all its test data."""

from __future__ import annotations

import statistics
import time

from eegnn.nn.model import GraphModel
from eegnn.studies.experiment import Measurement
from eegnn.studies.quantities import Quantity
from eegnn.train.batches import Batches

#: The number of timed passes; after so many seconds, three are enough.
PASSES, ENOUGH_SECONDS = 30, 20.0


def measure(model: GraphModel, batches: Batches) -> float:
    """Return the median seconds of a forward pass, with the model's own exits."""
    inputs = [(units.x, units.adj, units.edge_attr) for units in batches.part("test")]
    seconds: list[float] = []
    while len(seconds) <= PASSES:  # the first pass is a warm-up
        if len(seconds) > 3 and sum(seconds) > ENOUGH_SECONDS:
            break
        start = time.perf_counter()
        with batches.compute.autocast():
            for x, adj, edge_attr in inputs:
                model.predict(x, adj, edge_attr)
        batches.compute.synchronize()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds[1:])


INFERENCE_TIME = Measurement("inference_seconds", measure)
MILLISECONDS = Quantity(
    "milliseconds of inference", lambda run: 1000 * float(run["inference_seconds"]), "lower", 1
)
