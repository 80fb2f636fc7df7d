"""Graph Transfer: the error against the distance that a number has to travel."""

from __future__ import annotations

import operator
from functools import partial
from itertools import product
from statistics import fmean
from typing import Any

from eegnn.studies.configs import model_name
from eegnn.studies.experiment import About, Cell, Cells, Findings, Scope, Table
from eegnn.studies.figures import draw_lines
from eegnn.studies.findings import check, statistic
from eegnn.studies.quantities import LOG10_MSE
from eegnn.studies.tables import by_group, by_row
from eegnn.train.start import configure

TOPOLOGIES = ("line", "ring", "crossed-ring")
DISTANCES = (3, 5, 10, 50)
ROWS = ("SAS-GNN", "A-DGN", "SWAN", "GRAFF", "GCN")
#: Those that start from a linear map of the features in their authors' code.
LINEAR = ("A-DGN", "SWAN", "GRAFF")
#: The paper's order of errors, the smaller one first.
ORDER = (("A-DGN", "SAS-GNN"), ("SWAN", "SAS-GNN"), ("SAS-GNN", "GRAFF"))


def cells(scope: Scope) -> Cells:
    """A table for each topology: a row for each model, a column for each distance."""
    for topology, row in product(TOPOLOGIES, ROWS):
        for distance in scope.choose(DISTANCES, (3, 10)):
            options: dict[str, Any] = {}
            # With steps of 0.5 the states of GRAFF grow without bound in 50 layers.
            if row != "GCN":
                options["step_size"] = 0.1 if (row, distance) == ("GRAFF", 50) else 0.5
            if row in LINEAR:
                options["linear_encoder"] = True
            settings = {
                "hidden_channels": 64,
                "num_layers": distance,
                "epochs": scope.choose(100, 20),
                "patience": 40,
                "lr": 0.001,
                "batch_size": 10,
                "options": options,
            }
            dataset = f"transfer-{topology}-{distance}@0.1"
            config = configure(dataset, model_name(row), None, settings)
            seeds = scope.numbers(1 if distance == 50 else 3)
            runs = tuple(config.model_copy(update={"split": s, "seed": s}) for s in seeds)
            yield Cell(topology, row, str(distance), LOG10_MSE, runs)


def findings(table: Table) -> Findings:
    """The paper's ordering, by the mean over the distances."""
    for topology, results in by_group(table).items():
        errors = {
            row: statistic(fmean, (result.mean for result in line))
            for row, line in by_row(results).items()
        }
        known = sorted((error, row) for row, error in errors.items() if error is not None)
        order = ", ".join(f"{row} {error:.2f}" for error, row in known)
        for lower, higher in ORDER:
            yield check(
                f"{topology}: {lower} errs less than {higher}",
                (errors[lower], errors[higher]),
                operator.lt,
                f" (mean log₁₀ MSE over distances: {order})",
            )


ABOUT = About(
    title="Graph Transfer",
    shows="The figure of the error against the distance on lines, rings and crossed rings "
    "(fig:graph_transfer), which comes without numbers.",
    settings="SWAN's settings where they can be afforded: width 64, as many layers as the "
    "distance, Adam with lr 0.001, the mean squared error over all nodes. A tenth of the graphs "
    "(100 to train, 10 to validate, 10 to test) in batches of 10, at most 100 epochs, 40 without a "
    "better validation score; steps of 0.5 for all but GCN; A-DGN, SWAN and GRAFF start from a "
    "linear map of the features, as in their authors' code; three seeds of graphs and weights, at "
    "distance 50 one. At distance 50 the weights of SAS-GNN start small, as in its recipe, and "
    "GRAFF takes steps of 0.1: with 0.5 its error grew to 10²⁹.",
    quick="two distances, 20 epochs, one seed",
    minutes=(40, 2),
    draw=partial(draw_lines, x_label="distance", log_x=True),
)
