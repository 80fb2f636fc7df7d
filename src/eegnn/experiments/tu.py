"""Graph classification on the TU collection."""

from __future__ import annotations

from eegnn.studies.configs import model_name, repeat, with_recipe
from eegnn.studies.experiment import About, Cell, Cells, Scope, Score
from eegnn.studies.quantities import ACCURACY
from eegnn.studies.tables import PaperTable, quoted_cells

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

GROUP = "Graph classification"
#: The rest of the table, from Errica et al. and others, in the paper's order of columns.
COLUMNS = ("IMDB-B", "IMDB-M", "REDDIT-B", "REDDIT-M", "NCI1", "PROTEINS", "ENZYMES")
QUOTED: PaperTable = {
    "DGCNN": [
        (69.2, 3.0), (45.6, 3.4), (87.8, 2.5), (49.2, 1.2), (76.4, 1.7), (72.9, 3.5), (38.9, 5.7),
    ],
    "DiffPool": [
        (68.4, 3.3), (45.6, 3.4), (89.1, 1.6), (53.8, 1.4), (76.9, 1.9), (73.7, 3.5), (59.5, 5.6),
    ],
    "ECC": [(67.7, 2.8), (43.5, 3.1), None, None, (76.2, 1.4), (72.3, 3.4), (29.5, 8.2)],
    "GIN": [
        (71.2, 3.9), (48.5, 3.3), (89.9, 1.9), (56.1, 1.7), (80.0, 2.4), (75.3, 2.5), (59.6, 4.5),
    ],
    "GraphSAGE": [
        (68.8, 4.5), (47.6, 3.5), (84.3, 1.9), (50.0, 3.6), (74.9, 1.9), (70.5, 3.2), (58.2, 6.0),
    ],
    "CGMM": [None, None, (88.1, 1.9), None, None, None, None],
    "ICGMMf": [
        (71.8, 4.4), (49.0, 3.8), (91.6, 2.1), (55.6, 1.7), (76.4, 1.3), (73.2, 3.9), None,
    ],
    "SPN (k = 5)": [None, None, None, None, (74.2, 2.7), None, (69.4, 6.2)],
    "GSPN": [None, None, (90.5, 1.1), (55.3, 2.0), (76.6, 1.9), None, None],
    "Co-GNN": [
        (72.2, 4.1), (49.9, 4.5), (90.5, 1.9), (56.3, 2.1), (79.4, 0.7), (71.3, 2.0), (68.3, 5.7),
    ],
}  # fmt: skip


def cells(scope: Scope) -> Cells:
    """One table: a row for each model, a column for each data set."""
    settings = scope.choose({}, {"epochs": 2, "hidden_channels": 16})
    for (column, dataset), rows in PAPER.items():
        for row, score in rows.items():
            config = with_recipe(dataset, model_name(row), settings)
            runs = repeat(config, "split", scope.numbers(10))
            yield Cell(GROUP, row, column, ACCURACY, runs, score)


ABOUT = About(
    title="Graph classification",
    shows="tab:results_tudataset.",
    settings="The recipes, ours, over the ten published folds with one inner split each. Baselines "
    "have no settings here: their numbers are quoted.",
    quick="one fold, 2 epochs, width 16",
    minutes=(11_000, 4),
    why="The paper searches settings for each data set and does not publish what it found.",
    quoted=quoted_cells(GROUP, QUOTED, dict.fromkeys(COLUMNS, ACCURACY)),
)
