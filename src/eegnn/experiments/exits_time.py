"""Exit distributions: in steps, and in the time that the steps add up to."""

from __future__ import annotations

from typing import Any

import numpy as np

from eegnn.experiments.heterophilic import QUICK
from eegnn.nn.model import GraphModel
from eegnn.studies.configs import repeat, with_recipe
from eegnn.studies.experiment import About, Cells, Measurement, Scope
from eegnn.studies.figures import draw_exit_distributions
from eegnn.studies.quantities import MEAN_EXIT, Quantity
from eegnn.studies.tables import row_cells
from eegnn.train.batches import Batches
from eegnn.train.evaluate import evaluate

FIELD = "exit_time"
BINS = 30
#: The folds that the figures show, counted from 0.
FOLDS = {
    "Minesweeper": (0, 1, 4),
    "Tolokers": (0,),
    "Amazon-ratings": (0,),
    "Questions": (0,),
    "Roman-empire": (0,),
}
QUANTITIES = {
    "layer": MEAN_EXIT,
    "time": Quantity("mean exit time", lambda run: run[FIELD]["mean"], "equal"),
}


def measure(model: GraphModel, batches: Batches) -> dict[str, Any]:
    """Return the histogram of the exit times of test nodes, and their mean."""
    times = evaluate(model, batches, ("test",))["test"].time.double().cpu().numpy()
    counts, edges = np.histogram(times, BINS, (0.0, max(float(times.max()), 1e-9)))
    return {"mean": float(times.mean()), "counts": counts.tolist(), "edges": edges.tolist()}


def cells(scope: Scope) -> Cells:
    """A table for each data set: a row for each fold, with the mean exit in steps and in time."""
    for group, folds in FOLDS.items():
        config = with_recipe(group.lower(), "eegnn", scope.choose({}, QUICK))
        for split in scope.splits or scope.choose(folds, folds[:1]):
            runs = repeat(config, "split", (split,))
            yield from row_cells(group, f"fold {split + 1}", QUANTITIES, runs)


ABOUT = About(
    title="Exit distributions in steps and in time",
    shows="The figures of the exits of test nodes (fig:node_distributions, "
    "fig:amazon_node_distributions, fig:mines_node_distributions1 to 3, "
    "fig:questions_node_distributions, fig:roman_empire_node_distributions), which come without "
    "numbers.",
    settings="EEGNN with its recipes, L = 20. The exit time of a node is the sum of the steps τ "
    "that it took. The folds are the paper's for Minesweeper, the first for the others.",
    quick="the first fold, 5 epochs, width 32",
    minutes=(350, 1),
    draw=draw_exit_distributions,
    measurement=Measurement(FIELD, measure),
)
