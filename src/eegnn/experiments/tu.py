"""Graph classification on the TU collection."""

from __future__ import annotations

from eegnn.studies.configs import model_name, repeat, with_recipe
from eegnn.studies.experiment import Cell, Cells, Experiment, Scope, Score
from eegnn.studies.quantities import ACCURACY

#: tab:results_tudataset: SAS-GNN and EEGNN by column and data set, the cheapest first.
PAPER: dict[tuple[str, str], dict[str, Score]] = {
    ("ENZYMES", "enzymes"): {"SAS-GNN": Score(66.5, 5.9), "EEGNN": Score(70.3, 7.3)},
    ("IMDB-B", "imdb-binary"): {"SAS-GNN": Score(72.3, 2.9), "EEGNN": Score(71.2, 3.9)},
    ("PROTEINS", "proteins"): {"SAS-GNN": Score(72.0, 3.0), "EEGNN": Score(70.8, 2.7)},
    ("IMDB-M", "imdb-multi"): {"SAS-GNN": Score(48.0, 4.5), "EEGNN": Score(46.8, 4.4)},
    ("NCI1", "nci1"): {"SAS-GNN": Score(77.9, 1.8), "EEGNN": Score(62.53, 4.3)},
    ("REDDIT-B", "reddit-binary"): {"SAS-GNN": Score(88.3, 2.3), "EEGNN": Score(86.5, 2.8)},
    ("REDDIT-M", "reddit-multi-5k"): {"SAS-GNN": Score(55.1, 2.2), "EEGNN": Score(53.9, 2.4)},
}


def cells(scope: Scope) -> Cells:
    """One table: a row for each model, a column for each data set."""
    settings = scope.choose({}, {"epochs": 2, "hidden_channels": 16})
    for (column, dataset), rows in PAPER.items():
        for row, score in rows.items():
            config = with_recipe(dataset, model_name(row), settings)
            runs = repeat(config, "split", scope.numbers(10))
            yield Cell("Graph classification", row, column, ACCURACY, runs, score)


EXPERIMENT = Experiment(
    name="tu",
    title="Graph classification",
    shows="The rows of SAS-GNN and EEGNN in tab:results_tudataset.",
    settings="The recipes, ours, over the ten published folds with one inner split each. Baselines "
    "have no settings here and no cells.",
    quick="one fold, 2 epochs, width 16",
    minutes=(11_000, 4),
    cells=cells,
    why="The paper searches settings for each data set and does not publish what it found.",
)
