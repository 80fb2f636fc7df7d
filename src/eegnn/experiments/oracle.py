"""The optimal exit: what SAS-GNN would reach if each node left at a layer that is right."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from eegnn.analysis.layers import outputs_by_part
from eegnn.analysis.oracle import oracle
from eegnn.analysis.run import open_run
from eegnn.experiments.heterophilic import DATASETS, QUANTITIES, runs
from eegnn.studies.figures import draw_bars
from eegnn.studies.study import (
    Cell,
    Experiment,
    Finding,
    Line,
    Measured,
    Measurement,
    Plan,
    Quantity,
    Score,
)
from eegnn.studies.tables import means

GROUP = "SAS-GNN"
NO_EXIT, OPTIMAL, EARLIEST = "No exit", "Optimal exit", "Earliest right exit"
FIELD = "oracle"
#: tab:oracle_like
PAPER = {
    "Amazon-ratings": (Score(51.47, 0.68), Score(68.36, 0.86)),
    "Tolokers": (Score(85.80, 0.79), Score(89.21, 1.37)),
    "Questions": (Score(79.60, 1.15), Score(80.35, 1.29)),
    "Roman-empire": (Score(83.46, 0.61), Score(89.45, 0.37)),
    "Minesweeper": (Score(93.29, 0.61), Score(96.93, 0.58)),
}


def look(run: Path, root: Path | None) -> dict[str, Any]:
    """The scores of test nodes with the latest and with the earliest layer that is right."""
    model, batches = open_run(run, root)
    outputs, y = outputs_by_part(model, batches, ("test",))["test"]
    latest, earliest = (
        oracle(outputs, y, None, batches.problem.metric, pick) for pick in ("latest", "earliest")
    )
    return {
        "latest": latest.score,
        "earliest": earliest.score,
        "earliest_cost": earliest.cost,
        "full": latest.full_score,
        "right_somewhere": latest.right_somewhere,
        "right_at_end": latest.right_at_end,
    }


def _quantity(key: str, plain: Quantity) -> Quantity:
    def read(line: Line) -> float:
        return 100 * float(line[FIELD][key])

    return Quantity(plain.name, read, "higher")


def cells(plan: Plan) -> list[Cell]:
    """One table: a row for each data set, with and without the oracle."""
    found = []
    for row in DATASETS:
        configs, plain = tuple(runs(row, "sasgnn", {}, plan)), QUANTITIES[row]
        full, optimal = PAPER[row]
        found += [
            Cell(GROUP, row, NO_EXIT, plain, configs, full),
            Cell(GROUP, row, OPTIMAL, _quantity("latest", plain), configs, optimal),
            Cell(GROUP, row, EARLIEST, _quantity("earliest", plain), configs),
        ]
    return found


def findings(table: Sequence[Measured]) -> list[Finding]:
    """That there is something to gain."""
    at = means(table)
    found = []
    for row in DATASETS:
        plain, best = (at.get((GROUP, row, column)) for column in (NO_EXIT, OPTIMAL))
        claim = f"{row}: the optimal exit is better than full depth"
        if plain is None or best is None or plain.mean is None or best.mean is None:
            found.append(Finding(claim, None))
        else:
            text = f"{claim} ({best.mean:.2f} and {plain.mean:.2f})"
            found.append(Finding(text, best.mean > plain.mean))
    return found


EXPERIMENT = Experiment(
    name="oracle",
    title="The optimal exit",
    shows="tab:oracle_like.",
    settings="SAS-GNN with its recipes over the ten published splits. A node takes the logits of a "
    "layer at which its class is right, and those of the last layer where there is none. The paper "
    "does not say which, where several are right: beside its numbers stands the latest; the "
    "earliest, which is the cheapest exit, is given too. For accuracy they are the same, for "
    "AUROC they are not. 130 of the minutes are for Minesweeper and Tolokers.",
    quick="one split, 5 epochs, width 32",
    minutes=(1_000, 1),
    cells=cells,
    findings=findings,
    draw=draw_bars,
    measurement=Measurement(FIELD, look),
    why="Which of the layers that are right counts decides the AUROC, and the paper does not say.",
)
