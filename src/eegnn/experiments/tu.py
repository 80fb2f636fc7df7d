"""Graph classification on the TU collection."""

from __future__ import annotations

from itertools import product

from eegnn.experiments.paper import paper_table
from eegnn.studies.configs import model_name, repeat, with_recipe
from eegnn.studies.experiment import About, Cell, Cells, Scope
from eegnn.studies.quantities import ACCURACY
from eegnn.studies.tables import quoted_cells

#: tab:results_tudataset, the cheapest data set first.
PAPER = paper_table("tu")
DATASETS = {
    "ENZYMES": "enzymes",
    "IMDB-B": "imdb-binary",
    "PROTEINS": "proteins",
    "IMDB-M": "imdb-multi",
    "NCI1": "nci1",
    "REDDIT-B": "reddit-binary",
    "REDDIT-M": "reddit-multi-5k",
}
GROUP = "Graph classification"
#: The rest of the table, from Errica et al. and others, in the paper's order of columns.
QUOTED = paper_table("tu_quoted")


def cells(scope: Scope) -> Cells:
    """One table: a row for each model, a column for each data set."""
    settings = scope.choose({}, {"epochs": 2, "hidden_channels": 16})
    for column, row in product(DATASETS, PAPER):
        config = with_recipe(DATASETS[column], model_name(row), settings)
        runs = repeat(config, "split", scope.numbers(10))
        yield Cell(GROUP, row, column, ACCURACY, runs, PAPER[row][column])


ABOUT = About(
    title="Graph classification",
    shows="tab:results_tudataset.",
    settings="The recipes, ours, over the ten published folds with one inner split each. Baselines "
    "have no settings here: their numbers are quoted.",
    quick="one fold, 2 epochs, width 16",
    minutes=(11_000, 4),
    why="The paper searches settings for each data set and does not publish what it found.",
    quoted=quoted_cells(GROUP, QUOTED, dict.fromkeys(DATASETS, ACCURACY)),
)
