"""Early exit on classic backbones, with 20 layers."""

from __future__ import annotations

import operator
from itertools import product

from eegnn.experiments.heterophilic import QUANTITIES, QUICK, SPLITS, recipe_runs
from eegnn.studies.configs import Runs, model_name, repeat, with_recipe_of
from eegnn.studies.experiment import About, Cell, Cells, Findings, Scope, Score, Table
from eegnn.studies.findings import check, means, statistic

ACTIVATIONS = {"ReLU": "relu", "ReLU + Tanh": "relu_tanh"}
DATASETS = ("Minesweeper", "Tolokers", "Questions", "Amazon-ratings", "Roman-empire")
#: tab:activation_comparison_grouped and tab:activation_comparison_amazon_roman
PAPER = {
    "ReLU": {
        "GCN": [(91.29, 0.5), (75.58, 3.7), (74.92, 1.4), (49.72, 0.3), (81.16, 0.6)],
        "EE+GCN": [(91.07, 0.7), (78.02, 5.3), (75.56, 1.1), (51.13, 0.7), (79.89, 0.7)],
        "SAGE": [(95.61, 0.6), (84.54, 0.65), (75.03, 0.4), (52.06, 0.4), (84.28, 0.8)],
        "EE+SAGE": [(95.73, 0.4), (76.04, 3.7), (71.36, 1.2), (50.51, 0.7), (78.94, 6.4)],
        "GAT": [(73.98, 15.0), (76.84, 7.8), (74.39, 0.9), (48.40, 0.5), (42.26, 32.4)],
        "EE+GAT": [(84.17, 14.0), (79.02, 3.8), (74.91, 1.1), (51.88, 0.5), (77.21, 0.9)],
        "GIN": [(61.92, 1.9), (50.0, 0.0), (50.0, 0.0), (42.69, 4.3), (13.96, 0.0)],
        "EE+GIN": [(51.11, 0.3), (50.0, 0.0), (71.27, 0.8), (51.12, 0.8), (65.85, 0.8)],
    },
    "ReLU + Tanh": {
        "SAS-GNN": [(93.29, 0.61), (85.80, 0.79), (79.60, 1.15), (51.47, 0.7), (83.46, 0.6)],
        "EEGNN": [(93.18, 1.37), (85.26, 0.65), (78.90, 1.15), (51.54, 0.5), (80.36, 0.4)],
        "GCN": [(90.42, 0.6), (84.89, 0.89), (76.56, 1.0), (48.53, 0.4), (76.75, 0.4)],
        "EE+GCN": [(90.39, 0.6), (83.54, 1.4), (76.33, 1.3), (51.25, 0.4), (79.76, 0.4)],
        "SAGE": [(96.60, 0.3), (84.13, 0.42), (75.22, 1.0), (52.26, 0.6), (86.55, 0.6)],
        "EE+SAGE": [(96.56, 0.6), (74.66, 0.99), (72.09, 1.7), (50.67, 0.6), (81.10, 1.2)],
        "GAT": [(91.08, 0.5), (84.09, 0.89), (75.53, 1.3), (49.08, 0.7), (75.86, 1.1)],
        "EE+GAT": [(91.89, 1.5), (80.44, 4.0), (74.90, 2.2), (51.85, 0.5), (77.48, 0.8)],
        "GIN": [(89.89, 0.7), (82.55, 1.1), (77.94, 1.2), (49.50, 0.5), (83.27, 1.1)],
        "EE+GIN": [(51.03, 1.6), (78.87, 4.3), (70.99, 1.4), (51.26, 0.5), (65.75, 0.8)],
    },
}


def cells(scope: Scope) -> Cells:
    """A table for each data set: a row for each model, a column for each activation."""
    for place, dataset in enumerate(DATASETS):
        for row, column in product(PAPER["ReLU + Tanh"], ACTIVATIONS):
            if row in PAPER[column]:
                runs = _runs(dataset, row, column, scope)
                score = Score(*PAPER[column][row][place])
                yield Cell(dataset, row, column, QUANTITIES[dataset], runs, score)


def _runs(dataset: str, row: str, column: str, scope: Scope) -> Runs:
    if row in ("SAS-GNN", "EEGNN"):  # the runs of the main table
        return recipe_runs(dataset, model_name(row), {}, scope)
    early = row.startswith("EE+")
    # Without exits the limit of the loop, H + step(H), which is what a residual connection is.
    options = {"activation": ACTIVATIONS[column], "shared": True}
    settings = {
        **scope.choose({}, QUICK),
        "num_layers": 21 if early else 20,  # L = 20 with exits counts from 0
        "options": options if early else {**options, "residual": True},
    }
    config = with_recipe_of("eegnn", dataset.lower(), model_name(row), settings)
    return repeat(config, "split", scope.numbers(SPLITS))


def findings(table: Table) -> Findings:
    """Exits on classic backbones do not reach EEGNN on Questions and Tolokers."""
    at = means(table)
    others = [row for row in PAPER["ReLU"] if row.startswith("EE+")]
    for dataset in ("Tolokers", "Questions"):
        scores = [at[dataset, row, column] for row, column in product(others, ACTIVATIONS)]
        yield check(
            f"{dataset}: EEGNN is better than early exit on each classic backbone",
            (at[dataset, "EEGNN", "ReLU + Tanh"], statistic(max, scores)),
            operator.gt,
            " ({:.2f}, the best of the others {:.2f})",
        )


ABOUT = About(
    title="Early exit on classic backbones",
    shows="tab:activation_comparison_grouped and tab:activation_comparison_amazon_roman.",
    settings="All models with the recipe of EEGNN, as in the paper, L = 20 (21 steps with "
    "exits, 20 without, where layers have a residual connection as the loop has) and one set of "
    "weights for all layers, over the ten published splits.",
    quick="one split, 5 epochs, width 32",
    minutes=(32_000, 3),
    why="The paper's settings are those of its EEGNN, which are not published.",
)
