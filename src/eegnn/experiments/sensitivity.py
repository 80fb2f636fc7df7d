"""Over-squashing: how much the states of each layer matter at the end."""

from __future__ import annotations

import math
from functools import partial
from itertools import product
from typing import Any

from eegnn.analysis.sensitivity import layer_sensitivity
from eegnn.nn.model import GraphModel
from eegnn.studies.configs import model_name, repeat, with_recipe_of
from eegnn.studies.experiment import About, Cells, Findings, Measurement, Scope, Table
from eegnn.studies.figures import draw_lines
from eegnn.studies.findings import check, means
from eegnn.studies.quantities import log_at_layer
from eegnn.studies.tables import row_cells
from eegnn.train.batches import Batches

#: The data sets, with the widths of tab:hps_sensitivity_dirichlet.
DATASETS = {
    "Peptides-func": ("peptides-func", 300),
    "Peptides-struct": ("peptides-struct", 300),
    "Pascal-VOC": ("pascalvoc-sp", 128),
}
DEPTH = 10
FIELD = "sensitivity"
OPTIONS: dict[str, dict[str, Any]] = {
    "SAS-GNN": {"edge_term": "none"},
    "A-DGN": {"step_size": 0.5},
    "GRAFF": {},
    "GCN": {},
}


def measure(model: GraphModel, batches: Batches) -> list[float]:
    """Return S_0 … S_{L-1} on the first test graph."""
    first = batches.load(batches.problem.test[:1])
    return layer_sensitivity(model, first.x, first.adj.edge_index, first.edge_attr).tolist()


def cells(scope: Scope) -> Cells:
    """A table for each data set: a row for each model, a column for each layer."""
    quantities = {str(i): log_at_layer("ln S_l", FIELD, i, math.log) for i in range(DEPTH)}
    for group, row in product(DATASETS, OPTIONS):
        dataset, width = DATASETS[group]
        sizes = {"num_layers": DEPTH, "hidden_channels": scope.choose(width, 8)}
        settings = {**sizes, "epochs": scope.choose(10, 1), "options": OPTIONS[row]}
        config = with_recipe_of("sasgnn", dataset, model_name(row), settings)
        runs = repeat(config, "seed", scope.numbers(1))
        yield from row_cells(group, row, quantities, runs)


def findings(table: Table) -> Findings:
    """GCN depends on its last layers, the others on their first too."""
    at = means(table)
    for group, row in product(DATASETS, OPTIONS):
        rises = row == "GCN"
        verb = "rises over" if rises else "does not rise by more than 1 over"
        yield check(
            f"{group}: ln S_l of {row} {verb} the layers",
            (at[group, row, "0"], at[group, row, str(DEPTH - 1)]),
            lambda first, last, rises=rises: (last - first > 1) == rises,
            " ({:.1f} to {:.1f})",
        )


ABOUT = About(
    title="Sensitivity by layer",
    shows="The figures of ln S_l (fig:func_sensitivity, fig:appendix_sensitivity), which come "
    "without numbers.",
    settings="One training for each model with the recipe of SAS-GNN, but 10 epochs; 10 layers and "
    "width 300, or 128 on Pascal-VOC, as in the paper (tab:hps_sensitivity_dirichlet). S_l is "
    "exact, of the first test graph and the best epoch. No edge features.",
    quick="width 8, one epoch",
    minutes=(250, 6),
    draw=partial(draw_lines, x_label="layer"),
    measurement=Measurement(FIELD, measure),
)
