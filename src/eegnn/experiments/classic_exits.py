"""Early exit on classic backbones, with 20 layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eegnn.experiments.heterophilic import DATASETS, QUANTITIES, QUICK, SPLITS
from eegnn.studies.figures import draw_bars
from eegnn.studies.study import Cell, Experiment, Finding, Measured, Plan
from eegnn.studies.tables import (
    Printed,
    beside,
    each,
    means,
    printed,
    with_recipe,
    with_recipe_of,
)
from eegnn.train.config import Config

ACTIVATIONS = {"ReLU": "relu", "ReLU + Tanh": "relu_tanh"}
BACKBONES = {"GCN": "gcn", "SAGE": "sage", "GAT": "gat", "GIN": "gin"}
MODELS = {
    "SAS-GNN": "sasgnn",
    "EEGNN": "eegnn",
    **BACKBONES,
    **{f"EE+{name}": f"ee-{model}" for name, model in BACKBONES.items()},
}
#: tab:activation_comparison_grouped and tab:activation_comparison_amazon_roman
PAPER: dict[str, dict[str, list[Printed]]] = {
    "Minesweeper": {
        "SAS-GNN": [None, (93.29, 0.61)],
        "EEGNN": [None, (93.18, 1.37)],
        "GCN": [(91.29, 0.5), (90.42, 0.6)],
        "EE+GCN": [(91.07, 0.7), (90.39, 0.6)],
        "SAGE": [(95.61, 0.6), (96.60, 0.3)],
        "EE+SAGE": [(95.73, 0.4), (96.56, 0.6)],
        "GAT": [(73.98, 15.0), (91.08, 0.5)],
        "EE+GAT": [(84.17, 14.0), (91.89, 1.5)],
        "GIN": [(61.92, 1.9), (89.89, 0.7)],
        "EE+GIN": [(51.11, 0.3), (51.03, 1.6)],
    },
    "Tolokers": {
        "SAS-GNN": [None, (85.80, 0.79)],
        "EEGNN": [None, (85.26, 0.65)],
        "GCN": [(75.58, 3.7), (84.89, 0.89)],
        "EE+GCN": [(78.02, 5.3), (83.54, 1.4)],
        "SAGE": [(84.54, 0.65), (84.13, 0.42)],
        "EE+SAGE": [(76.04, 3.7), (74.66, 0.99)],
        "GAT": [(76.84, 7.8), (84.09, 0.89)],
        "EE+GAT": [(79.02, 3.8), (80.44, 4.0)],
        "GIN": [(50.0, 0.0), (82.55, 1.1)],
        "EE+GIN": [(50.0, 0.0), (78.87, 4.3)],
    },
    "Questions": {
        "SAS-GNN": [None, (79.60, 1.15)],
        "EEGNN": [None, (78.90, 1.15)],
        "GCN": [(74.92, 1.4), (76.56, 1.0)],
        "EE+GCN": [(75.56, 1.1), (76.33, 1.3)],
        "SAGE": [(75.03, 0.4), (75.22, 1.0)],
        "EE+SAGE": [(71.36, 1.2), (72.09, 1.7)],
        "GAT": [(74.39, 0.9), (75.53, 1.3)],
        "EE+GAT": [(74.91, 1.1), (74.90, 2.2)],
        "GIN": [(50.0, 0.0), (77.94, 1.2)],
        "EE+GIN": [(71.27, 0.8), (70.99, 1.4)],
    },
    "Amazon-ratings": {
        "SAS-GNN": [None, (51.47, 0.7)],
        "EEGNN": [None, (51.54, 0.5)],
        "GCN": [(49.72, 0.3), (48.53, 0.4)],
        "EE+GCN": [(51.13, 0.7), (51.25, 0.4)],
        "SAGE": [(52.06, 0.4), (52.26, 0.6)],
        "EE+SAGE": [(50.51, 0.7), (50.67, 0.6)],
        "GAT": [(48.40, 0.5), (49.08, 0.7)],
        "EE+GAT": [(51.88, 0.5), (51.85, 0.5)],
        "GIN": [(42.69, 4.3), (49.50, 0.5)],
        "EE+GIN": [(51.12, 0.8), (51.26, 0.5)],
    },
    "Roman-empire": {
        "SAS-GNN": [None, (83.46, 0.6)],
        "EEGNN": [None, (80.36, 0.4)],
        "GCN": [(81.16, 0.6), (76.75, 0.4)],
        "EE+GCN": [(79.89, 0.7), (79.76, 0.4)],
        "SAGE": [(84.28, 0.8), (86.55, 0.6)],
        "EE+SAGE": [(78.94, 6.4), (81.10, 1.2)],
        "GAT": [(42.26, 32.4), (75.86, 1.1)],
        "EE+GAT": [(77.21, 0.9), (77.48, 0.8)],
        "GIN": [(13.96, 0.0), (83.27, 1.1)],
        "EE+GIN": [(65.85, 0.8), (65.75, 0.8)],
    },
}


def cells(plan: Plan) -> list[Cell]:
    """A table for each data set: a row for each model, a column for each activation."""
    return [cell for group in PAPER for cell in _table(group, plan)]


def _table(group: str, plan: Plan) -> list[Cell]:
    quantities = dict.fromkeys(ACTIVATIONS, QUANTITIES[group])
    paper = printed(tuple(ACTIVATIONS), PAPER[group])
    return beside(group, paper, quantities, lambda row, column: _runs(group, row, column, plan))


def _runs(group: str, row: str, column: str, plan: Plan) -> list[Config]:
    dataset, model, splits = DATASETS[group], MODELS[row], plan.over(SPLITS, 1)
    settings: dict[str, Any] = QUICK if plan.quick else {}
    if row in ("SAS-GNN", "EEGNN"):  # the runs of the main table
        return with_recipe(dataset, model, "split", splits, settings)
    options = {"activation": ACTIVATIONS[column], "shared": True}
    steps = 21 if row.startswith("EE+") else 20  # L = 20 of a model with exits counts from 0
    settings = {**settings, "num_layers": steps, "options": options}
    return each(with_recipe_of(dataset, model, "eegnn", dataset, settings), "split", splits)


def findings(table: Sequence[Measured]) -> list[Finding]:
    """That exits on classic backbones do not reach EEGNN's on Questions and Tolokers."""
    at = means(table)
    found = []
    for group in ("Tolokers", "Questions"):
        best = at.get((group, "EEGNN", "ReLU + Tanh"))
        others = [at.get((group, f"EE+{name}", a)) for name in BACKBONES for a in ACTIVATIONS]
        scores = [m.mean for m in others if m is not None and m.mean is not None]
        claim = f"{group}: EEGNN is better than early exit on each classic backbone"
        if best is None or best.mean is None or len(scores) < len(others):
            found.append(Finding(claim, None))
        else:
            text = f"{claim} ({best.mean:.2f}, the best of the others {max(scores):.2f})"
            found.append(Finding(text, best.mean > max(scores)))
    return found


EXPERIMENT = Experiment(
    name="classic-exits",
    title="Early exit on classic backbones",
    shows="tab:activation_comparison_grouped and tab:activation_comparison_amazon_roman.",
    settings="All models with the recipe of EEGNN, as in the paper, L = 20 (21 steps with "
    "exits, 20 without) and one set of weights for all layers, over the ten published splits. "
    "3,400 of the minutes are for Minesweeper and Tolokers; all are estimated.",
    quick="one split, 5 epochs, width 32",
    minutes=(32_000, 3),
    cells=cells,
    findings=findings,
    draw=draw_bars,
    why="The paper's settings are those of its EEGNN, which are not published.",
)
