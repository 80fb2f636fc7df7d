"""The Long Range Graph Benchmark, with three ways to use edge features."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from eegnn.experiments.paper import paper_table
from eegnn.studies.configs import Runs, repeat, with_recipe
from eegnn.studies.experiment import About, Cells, Scope
from eegnn.studies.quantities import MAE, Quantity, percent
from eegnn.studies.tables import paper_cells, quoted_cells

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
PAPER = paper_table("lrgb")

#: The rest of the table, from other papers.
QUOTED = paper_table("lrgb_quoted")


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


ABOUT = About(
    title="The Long Range Graph Benchmark",
    shows="tab:result_lrgb_extended; all rows but ours are quoted.",
    settings="The recipes: width 300 (Pascal 128), 10 layers, AdamW, up to 1000 epochs, four "
    "seeds. An epoch of Peptides with 2.3 million nodes takes about 10 minutes of a core, by the "
    "count of its multiplications.",
    quick="one epoch of width 8, one seed",
    minutes=(200_000, 6),
    needs="a GPU, or a hundred cores",
    quoted=quoted_cells("LRGB", QUOTED, QUANTITIES),
)
