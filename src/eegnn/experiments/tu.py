"""Graph classification on the TU collection."""

from __future__ import annotations

from typing import Any

from eegnn.studies.figures import draw_bars
from eegnn.studies.study import ACCURACY, Cell, Experiment, Plan
from eegnn.studies.tables import beside, printed, with_recipe

#: The cheapest first.
DATASETS = {
    "ENZYMES": "enzymes",
    "IMDB-B": "imdb-binary",
    "PROTEINS": "proteins",
    "IMDB-M": "imdb-multi",
    "NCI1": "nci1",
    "REDDIT-B": "reddit-binary",
    "REDDIT-M": "reddit-multi-5k",
}
FOLDS = 10
QUICK: dict[str, Any] = {"epochs": 2, "hidden_channels": 16}
MODELS = {"SAS-GNN": "sasgnn", "EEGNN": "eegnn"}
#: tab:results_tudataset
PAPER = printed(
    tuple(DATASETS),
    {
        "SAS-GNN": [
            (66.5, 5.9), (72.3, 2.9), (72.0, 3.0), (48.0, 4.5), (77.9, 1.8), (88.3, 2.3),
            (55.1, 2.2),
        ],
        "EEGNN": [
            (70.3, 7.3), (71.2, 3.9), (70.8, 2.7), (46.8, 4.4), (62.53, 4.3), (86.5, 2.8),
            (53.9, 2.4),
        ],
    },
)  # fmt: skip


def cells(plan: Plan) -> list[Cell]:
    """One table: a row for each model, a column for each data set."""
    settings = QUICK if plan.quick else {}
    found = beside(
        "Graph classification",
        PAPER,
        dict.fromkeys(DATASETS, ACCURACY),
        lambda row, column: with_recipe(
            DATASETS[column], MODELS[row], "split", plan.over(FOLDS, 1), settings
        ),
    )
    return sorted(found, key=lambda cell: list(DATASETS).index(cell.column))


EXPERIMENT = Experiment(
    name="tu",
    title="Graph classification",
    shows="The rows of SAS-GNN and EEGNN in tab:results_tudataset.",
    settings="The recipes, ours, over the ten published folds with one inner split each. Baselines "
    "have no settings here and no cells. Of the minutes, 10,000 are for the two REDDIT sets, "
    "estimated by their size; the others take 300.",
    quick="one fold, 2 epochs, width 16",
    minutes=(11_000, 4),
    cells=cells,
    draw=draw_bars,
    why="The paper searches settings for each data set and does not publish what it found.",
)
