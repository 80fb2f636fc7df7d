"""The Long Range Graph Benchmark, with three ways to use edge features."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from eegnn.studies.configs import Runs, repeat, with_recipe
from eegnn.studies.experiment import Cells, Experiment, Scope
from eegnn.studies.quantities import MAE, Quantity, percent
from eegnn.studies.tables import PaperTable, paper_cells

MAE_4 = replace(MAE, digits=4)
DATASETS = {
    "Peptides-func": "peptides-func",
    "Peptides-struct": "peptides-struct",
    "Pascal VOC-SP": "pascalvoc-sp",
}
QUANTITIES: dict[str, Quantity] = {
    "Peptides-func": percent("AP"),
    "Peptides-struct": MAE_4,
    "Pascal VOC-SP": percent("F1"),
}
#: Weight initialisations in the paper.
SEEDS = 4
#: The rows, with their models and the options that differ from the recipes.
ROWS: dict[str, tuple[str, dict[str, Any]]] = {
    "SAS-GNN noedge": ("sasgnn", {"edge_term": "none"}),
    "SAS-GNN edge": ("sasgnn", {"edge_term": "linear"}),
    "SAS-GNN ours": ("sasgnn", {}),
    "EEGNN ours": ("eegnn", {}),
}
#: tab:result_lrgb_extended
PAPER: PaperTable = {
    "SAS-GNN noedge": [(69.71, 0.62), (0.2449, 0.0013), (22.65, 0.27)],
    "SAS-GNN edge": [(69.27, 0.58), (0.2547, 0.0163), (23.31, 0.49)],
    "SAS-GNN ours": [(69.44, 0.63), (0.2528, 0.0130), (25.64, 0.63)],
    "EEGNN ours": [(68.23, 0.37), (0.2532, 0.0050), (24.10, 0.73)],
}


def cells(scope: Scope) -> Cells:
    """One table: a row for each model, a column for each data set."""
    return paper_cells(
        "LRGB", PAPER, QUANTITIES, lambda row, column: recipe_runs(column, *ROWS[row], scope)
    )


def recipe_runs(column: str, model: str, options: dict[str, Any], scope: Scope) -> Runs:
    """Return the runs of a model with its recipe, and further options, one for each seed."""
    settings = {"options": options, **scope.choose({}, {"epochs": 1, "hidden_channels": 8})}
    config = with_recipe(DATASETS[column], model, settings)
    return repeat(config, "seed", scope.numbers(SEEDS))


EXPERIMENT = Experiment(
    name="lrgb",
    title="The Long Range Graph Benchmark",
    shows="Our rows of tab:result_lrgb_extended.",
    settings="The recipes: width 300 (Pascal 128), 10 layers, AdamW, up to 1000 epochs, four "
    "seeds. An epoch of Peptides with 2.3 million nodes takes about 10 minutes of a core, by the "
    "count of its multiplications.",
    quick="one epoch of width 8, one seed",
    minutes=(200_000, 6),
    cells=cells,
    needs="a GPU, or a hundred cores",
)
