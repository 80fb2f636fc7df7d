"""Over-squashing: how much the states of each layer matter at the end."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from eegnn.analysis.run import open_run
from eegnn.analysis.sensitivity import layer_sensitivity
from eegnn.studies.figures import draw_lines
from eegnn.studies.study import (
    Cell,
    Experiment,
    Finding,
    Line,
    Measured,
    Measurement,
    Plan,
    Quantity,
)
from eegnn.studies.tables import means, with_recipe_of
from eegnn.train.batches import gather
from eegnn.train.config import Config

GROUPS = {
    "Peptides-func": "peptides-func",
    "Peptides-struct": "peptides-struct",
    "Pascal-VOC": "pascalvoc-sp",
}
DEPTH = 10
FIELD = "sensitivity"
#: The names of the rows, the models, and what differs from model to model.
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "SAS-GNN": ("sasgnn", {"edge_term": "none"}),
    "A-DGN": ("adgn", {"step_size": 0.5}),
    "GRAFF": ("graff", {}),
    "GCN": ("gcn", {}),
}


def look(run: Path, root: Path | None) -> list[float]:
    """S_0 … S_{L-1} on the first test graph."""
    model, batches = open_run(run, root)
    problem = batches.problem
    graph = problem.graphs[int(problem.test[0])]
    units = gather(
        [graph], model.edge_dim is not None, problem.node_categories, problem.edge_categories
    )
    found: list[float] = layer_sensitivity(
        model, units.x, units.adj.edge_index, units.edge_attr
    ).tolist()
    return found


def _quantity(layer: int) -> Quantity:
    def read(line: Line) -> float:
        return math.log(max(line[FIELD][layer], 1e-30))

    return Quantity("ln S_l", read, "equal")


def cells(plan: Plan) -> list[Cell]:
    """A table for each data set: a row for each model, a column for each layer."""
    return [
        Cell(group, row, str(layer), _quantity(layer), (_config(group, row, plan),))
        for group in GROUPS
        for row in MODELS
        for layer in range(DEPTH)
    ]


def _config(group: str, row: str, plan: Plan) -> Config:
    model, options = MODELS[row]
    settings: dict[str, Any] = {
        "num_layers": DEPTH,
        "hidden_channels": 8 if plan.quick else 64,
        "epochs": 1 if plan.quick else 10,
        "seed": plan.over(1, 1)[0],
        "options": options,
    }
    dataset = GROUPS[group]
    return with_recipe_of(dataset, model, "sasgnn", dataset, settings)


def findings(table: Sequence[Measured]) -> list[Finding]:
    """That GCN hears its last layers, and the others their first too."""
    at = means(table)
    found = []
    for group in GROUPS:
        for row in MODELS:
            first, last = at.get((group, row, "0")), at.get((group, row, str(DEPTH - 1)))
            sign = "rises over" if row == "GCN" else "does not rise by more than 1 over"
            claim = f"{group}: ln S_l of {row} {sign} the layers"
            if first is None or last is None or first.mean is None or last.mean is None:
                found.append(Finding(claim, None))
                continue
            rise = last.mean - first.mean
            text = f"{claim} ({first.mean:.1f} to {last.mean:.1f})"
            found.append(Finding(text, rise > 1 if row == "GCN" else rise <= 1))
    return found


EXPERIMENT = Experiment(
    name="sensitivity",
    title="Sensitivity by layer",
    shows="The figures of ln S_l (fig:func_sensitivity, fig:appendix_sensitivity), which come "
    "without numbers.",
    settings="One training for each model with the recipe of SAS-GNN, 10 layers as in the paper "
    "(tab:hps_sensitivity_dirichlet), but width 64 rather than 300 or 128, and 10 epochs. S_l is "
    "exact, of the first test graph and the best epoch. No edge features. The minutes are "
    "estimated: 45 for Peptides-func.",
    quick="width 8, one epoch",
    minutes=(250, 6),
    cells=cells,
    findings=findings,
    draw=lambda table, path: draw_lines(table, path, "layer"),
    measurement=Measurement(FIELD, look),
)
