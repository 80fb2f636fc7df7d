"""The optimal exit: what SAS-GNN would reach if each node left at a layer that is right."""

from __future__ import annotations

import operator
from typing import Any

from eegnn.analysis.layers import outputs_by_part
from eegnn.analysis.oracle import Pick, oracle
from eegnn.experiments.heterophilic import QUANTITIES, recipe_runs
from eegnn.nn.model import GraphModel
from eegnn.studies.experiment import About, Cells, Findings, Measurement, Scope, Score, Table
from eegnn.studies.findings import check, means
from eegnn.studies.quantities import Quantity
from eegnn.studies.tables import row_cells
from eegnn.train.batches import Batches

GROUP = "SAS-GNN"
NO_EXIT, OPTIMAL = "No exit", "Optimal exit"
#: The columns, and which of the layers that are right they take.
PICKS: dict[str, Pick] = {
    OPTIMAL: "latest",
    "Earliest right exit": "earliest",
    "Most confident right exit": "confident",
}
FIELD = "oracle"
#: tab:oracle_like
PAPER = {
    "Amazon-ratings": {NO_EXIT: Score(51.47, 0.68), OPTIMAL: Score(68.36, 0.86)},
    "Tolokers": {NO_EXIT: Score(85.80, 0.79), OPTIMAL: Score(89.21, 1.37)},
    "Questions": {NO_EXIT: Score(79.60, 1.15), OPTIMAL: Score(80.35, 1.29)},
    "Roman-empire": {NO_EXIT: Score(83.46, 0.61), OPTIMAL: Score(89.45, 0.37)},
    "Minesweeper": {NO_EXIT: Score(93.29, 0.61), OPTIMAL: Score(96.93, 0.58)},
}


def measure(model: GraphModel, batches: Batches) -> dict[str, Any]:
    """Return the scores of test nodes that leave at one of the layers that are right."""
    outputs, y = outputs_by_part(model, batches, ("test",))["test"]
    metric = batches.problem.metric
    found = {pick: oracle(outputs, y, metric, pick) for pick in PICKS.values()}
    earliest = found["earliest"]
    return {
        **{pick: best.score for pick, best in found.items()},
        "earliest_cost": earliest.cost,
        "full": earliest.full_score,
        "right_somewhere": earliest.right_somewhere,
        "right_at_end": earliest.right_at_end,
    }


def cells(scope: Scope) -> Cells:
    """One table: a row for each data set, with and without the oracle."""
    for row, plain in QUANTITIES.items():
        quantities = {column: _score(plain.name, pick) for column, pick in PICKS.items()}
        quantities = {NO_EXIT: plain, **quantities}
        runs = recipe_runs(row, "sasgnn", {}, scope)
        yield from row_cells(GROUP, row, quantities, runs, PAPER[row])


def _score(name: str, pick: Pick) -> Quantity:
    return Quantity(name, lambda run: 100 * run[FIELD][pick], "higher")


def findings(table: Table) -> Findings:
    """There is something to gain."""
    at = means(table)
    for row in QUANTITIES:
        yield check(
            f"{row}: the optimal exit is better than full depth",
            (at[GROUP, row, OPTIMAL], at[GROUP, row, NO_EXIT]),
            operator.gt,
            " ({:.2f} and {:.2f})",
        )


ABOUT = About(
    title="The optimal exit",
    shows="tab:oracle_like.",
    settings="SAS-GNN with its recipes over the ten published splits. A node takes the logits of a "
    "layer at which its class is right, and those of the last layer where there is none. The paper "
    "does not say which, where several are right: beside its numbers stands the latest; the "
    "earliest, which is the cheapest exit, and the one that gives the class the largest "
    "probability are given too. For accuracy they are the same, for AUROC they are not.",
    quick="one split, 5 epochs, width 32",
    minutes=(1_000, 1),
    measurement=Measurement(FIELD, measure),
    why="Which of the layers that are right counts decides the AUROC, and the paper does not say.",
)
