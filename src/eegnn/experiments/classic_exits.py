"""Early exit on classic backbones, with 20 layers."""

from __future__ import annotations

import operator
from itertools import product

from eegnn.experiments.heterophilic import QUANTITIES, QUICK, SPLITS, recipe_runs
from eegnn.experiments.paper import paper_table
from eegnn.studies.configs import Runs, model_name, repeat, with_recipe_of
from eegnn.studies.experiment import About, Cell, Cells, Findings, Scope, Table
from eegnn.studies.findings import check, means, statistic

ACTIVATIONS = {"ReLU": "relu", "ReLU + Tanh": "relu_tanh"}
DATASETS = ("Minesweeper", "Tolokers", "Questions", "Amazon-ratings", "Roman-empire")
#: tab:activation_comparison_grouped and tab:activation_comparison_amazon_roman
PAPER = {
    "ReLU": paper_table("classic_exits_relu"),
    "ReLU + Tanh": paper_table("classic_exits_relu_tanh"),
}


def cells(scope: Scope) -> Cells:
    """A table for each data set: a row for each model, a column for each activation."""
    for dataset in DATASETS:
        for row, column in product(PAPER["ReLU + Tanh"], ACTIVATIONS):
            if row in PAPER[column]:
                runs = _runs(dataset, row, column, scope)
                score = PAPER[column][row][dataset]
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
