"""The budget L: does early exit stay as good when it may go deeper?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eegnn.studies.figures import draw_lines
from eegnn.studies.study import (
    AUROC,
    MEAN_EXIT,
    Cell,
    Experiment,
    Finding,
    Measured,
    Plan,
    Quantity,
)
from eegnn.studies.tables import each, means, with_recipe_of
from eegnn.train.config import Config

DATASETS = {"Tolokers": "tolokers", "Questions": "questions"}
QUANTITIES: dict[str, Quantity] = {"AUROC": AUROC, "mean exit": MEAN_EXIT}
BUDGETS = (5, 10, 15, 20)
SPLITS = 3
MODELS = {
    "EEGNN": "eegnn",
    "EE+GCN": "ee-gcn",
    "EE+SAGE": "ee-sage",
    "EE+GAT": "ee-gat",
    "EE+GIN": "ee-gin",
}


def cells(plan: Plan) -> list[Cell]:
    """A table for each data set and quantity: a row for each model, a column for each budget."""
    budgets = (5, 10) if plan.quick else BUDGETS
    return [
        Cell(
            f"{group}, {name}",
            row,
            str(budget),
            quantity,
            tuple(each(_config(group, row, budget, plan), "split", plan.over(SPLITS, 1))),
        )
        for group in DATASETS
        for name, quantity in QUANTITIES.items()
        for row in MODELS
        for budget in budgets
    ]


def _config(group: str, row: str, budget: int, plan: Plan) -> Config:
    settings: dict[str, Any] = {"num_layers": budget + 1}  # the paper counts from 0
    if plan.quick:
        settings["epochs"] = 3
    return with_recipe_of(DATASETS[group], MODELS[row], "eegnn", DATASETS[group], settings)


def findings(table: Sequence[Measured]) -> list[Finding]:
    """That EEGNN varies less with the budget than the others."""
    at = means(table)
    found = []
    for group in DATASETS:
        budgets = dict.fromkeys(m.cell.column for m in table)
        ranges: dict[str, float] = {}
        for row in MODELS:
            line = [at.get((f"{group}, AUROC", row, budget)) for budget in budgets]
            scores = [m.mean for m in line if m is not None and m.mean is not None]
            if len(scores) == len(budgets):
                ranges[row] = max(scores) - min(scores)
        claim = f"{group}: EEGNN varies least with the budget"
        if len(ranges) < len(MODELS):
            found.append(Finding(claim, None))
        else:
            said = ", ".join(f"{row} {width:.2f}" for row, width in ranges.items())
            holds = ranges["EEGNN"] == min(ranges.values())
            found.append(Finding(f"{claim} (largest − smallest score: {said})", holds))
    return found


EXPERIMENT = Experiment(
    name="budget",
    title="Instability under the budget",
    shows="The figures of scores and exits against the budget L (fig:early-exit_unstable, "
    "fig:questions_exit_distribution_parameters, "
    "fig:tolokers_exit_distribution_parameters_performance), which come without numbers.",
    settings="All models with the recipe of EEGNN and another budget, one set of weights for all "
    "layers, three splits. A budget L is L + 1 steps, since the paper counts from 0. The minutes "
    "are estimated: 700 for Tolokers.",
    quick="one split, 3 epochs, two budgets",
    minutes=(3_500, 1),
    cells=cells,
    findings=findings,
    draw=lambda table, path: draw_lines(table, path, "budget L"),
)
