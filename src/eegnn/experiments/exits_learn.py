"""Do exits train on the first try, keep the score, and pay? Many seeds and splits of EEGNN."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eegnn.experiments.heterophilic import MODELS, SPLITS
from eegnn.experiments.heterophilic import PAPER as HETEROPHILIC
from eegnn.studies.figures import draw_rules
from eegnn.studies.study import (
    AUROC,
    Cell,
    Experiment,
    Finding,
    Line,
    Measured,
    Plan,
    Quantity,
)
from eegnn.studies.tables import means, with_recipe
from eegnn.train.config import Config

DATASETS = {"Minesweeper": "minesweeper", "Tolokers": "tolokers"}
SAS, EEGNN, PRINTED = "SAS-GNN", "EEGNN", "EEGNN, as printed"
SCORE, COST, COLLAPSED = "AUROC", "cost", "collapsed"
#: Seeds 100 and up on split 4.
SPLIT, FIRST_SEED = 4, 100
SEEDS = {"Minesweeper": 20, "Tolokers": 10}
#: The most node updates that EEGNN should need, %.
MOST = {"Minesweeper": 50.0, "Tolokers": 60.0}
#: A run is called collapsed if its mean exit is below this layer.
EARLIEST = 1.5


def _share(line: Line) -> float:
    return 100 * float(line["exits"]["mean"]) / (len(line["exits"]["histogram"]) - 1)


def _collapsed(line: Line) -> float:
    return float(line["exits"]["mean"] < EARLIEST)


QUANTITIES = {
    SCORE: AUROC,
    COST: Quantity("node updates, % of the full loop", _share, "lower", 1),
    COLLAPSED: Quantity("share of collapsed runs", _collapsed, "lower"),
}


def cells(plan: Plan) -> list[Cell]:
    """Two tables for each data set: many seeds on one split, and one seed on each split."""
    found = []
    for name in DATASETS:
        for group, over, rows in (
            (f"{name}, seeds", "seed", (EEGNN, PRINTED)),
            (f"{name}, splits", "split", (SAS, EEGNN, PRINTED)),
        ):
            for row in rows:
                runs = _runs(name, row, over, plan)
                for column in (SCORE,) if row == SAS else QUANTITIES:
                    paper = HETEROPHILIC.get((row, name)) if column == SCORE else None
                    found.append(Cell(group, row, column, QUANTITIES[column], runs, paper))
    return found


def _runs(name: str, row: str, over: str, plan: Plan) -> tuple[Config, ...]:
    model, settings = MODELS[row]
    settings = {**settings, "epochs": 5} if plan.quick else dict(settings)
    if over == "split":
        numbers: Sequence[int] = plan.over(SPLITS, 1)
        return tuple(with_recipe(DATASETS[name], model, "split", numbers, settings))
    seeds = range(FIRST_SEED, FIRST_SEED + (1 if plan.quick else SEEDS[name]))
    fixed: dict[str, Any] = {**settings, "split": SPLIT}
    return tuple(with_recipe(DATASETS[name], model, "seed", seeds, fixed))


def findings(table: Sequence[Measured]) -> list[Finding]:
    """That exits can be trusted, and pay."""
    at = {key: m.mean for key, m in means(table).items()}
    found = []
    for name in DATASETS:
        for row in (EEGNN, PRINTED):
            seeds, splits = f"{name}, seeds", f"{name}, splits"
            paper = HETEROPHILIC[EEGNN, name].mean
            collapsed = at.get((seeds, row, COLLAPSED))
            found += [
                _at_most(f"{seeds}: share of collapsed runs of {row}", collapsed, 0.0),
                _at_most(
                    f"{splits}: the paper's EEGNN, and {row}", paper, at.get((splits, row, SCORE))
                ),
                _at_most(
                    f"{splits}: node updates of {row}, %", at.get((splits, row, COST)), MOST[name]
                ),
            ]
    return found


def _at_most(claim: str, low: float | None, high: float | None) -> Finding:
    if low is None or high is None:
        return Finding(claim, None)
    return Finding(f"{claim}: {low:.4g} ≤ {high:.4g}", low <= high)


EXPERIMENT = Experiment(
    name="exits-learn",
    title="Do exits learn, and pay?",
    shows="Scores of tab:result_heterophilic; the rest the paper does not have.",
    settings="The recipes. Seeds 100 and up on split 4, and seed 0 on each of the ten published "
    "splits. As printed: heads of two layers that start as they are drawn, the paper's weights, "
    "no clipping and no cost of exits; the rest as in the recipe. A run is called collapsed if "
    "its mean exit is below 1.5 steps. Settings were chosen by validation scores on split 4, "
    "seed 100, but for the cost on Minesweeper: split 0 had been run without it.",
    quick="one seed and one split, 5 epochs",
    minutes=(900, 2),
    cells=cells,
    findings=findings,
    claims="What exits should do, as we see it",
    draw=lambda table, path: draw_rules(table, path, [(SCORE, COST)]),
)
