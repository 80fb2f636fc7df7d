"""The Long Range Graph Benchmark, with three ways to use edge features."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from eegnn.studies.configs import Runs, repeat, with_recipe
from eegnn.studies.experiment import About, Cells, Scope
from eegnn.studies.quantities import MAE, Quantity, percent
from eegnn.studies.tables import PaperTable, paper_cells, quoted_cells

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

#: The rest of the table, from other papers.
QUOTED: PaperTable = {
    "GCN": [(68.60, 0.50), (0.2460, 0.0013), (20.78, 0.31)],
    "GatedGCN": [(67.65, 0.47), (0.2477, 0.0009), (38.80, 0.40)],
    "GCN⁺": [(72.61, 0.67), (0.2421, 0.0016), (33.57, 0.87)],
    "GCN⁺ − dropout": [(67.48, 0.55), (0.2549, 0.0025), (30.72, 0.69)],
    "GCN⁺ − norm": [(71.07, 0.27), (0.2509, 0.0025), (18.02, 1.11)],
    "GatedGCN⁺": [(70.06, 0.33), (0.2431, 0.0020), (42.63, 0.57)],
    "GatedGCN⁺ − dropout": [(66.95, 1.01), (0.2508, 0.0014), (33.89, 0.66)],
    "GatedGCN⁺ − norm": [(67.33, 0.26), (0.2474, 0.0015), (36.28, 0.43)],
    "DIGL+MPNN": [(64.69, 0.19), (0.3173, 0.0007), (28.24, 0.39)],
    "DIGL+MPNN+LapPE": [(68.30, 0.26), (0.2616, 0.0018), (29.21, 0.38)],
    "MixHop-GCN": [(65.92, 0.36), (0.2921, 0.0023), (25.06, 1.33)],
    "MixHop-GCN+LapPE": [(68.43, 0.49), (0.2614, 0.0023), (22.18, 1.74)],
    "DRew-GCN": [(69.96, 0.76), (0.2781, 0.0028), (18.48, 1.07)],
    "DRew-GCN+LapPE": [(71.50, 0.44), (0.2536, 0.0015), (18.51, 0.92)],
    "GT+LapPE": [(63.26, 1.26), (0.2529, 0.0016), (26.94, 0.98)],
    "SAN+LapPE": [(63.84, 1.21), (0.2683, 0.0043), (32.30, 0.39)],
    "GraphGPS+LapPE": [(65.35, 0.41), (0.2500, 0.0005), (37.48, 1.09)],
    "Co-GNN": [(69.90, 0.93), (0.2503, 0.0025), None],
    "AMP": [(71.63, 0.58), (0.2431, 0.0004), None],
    "MTGCN": [(69.36, 0.89), (0.2461, 0.0019), None],
    "GRAND": [(57.89, 0.62), (0.3418, 0.0015), (19.18, 0.97)],
    "GraphCON": [(60.22, 0.68), (0.2778, 0.0018), (21.08, 0.91)],
    "A-DGN": [(59.75, 0.44), (0.2874, 0.0021), (23.49, 0.54)],
    "SWAN": [(63.13, 0.46), (0.2571, 0.0018), (27.96, 0.48)],
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
