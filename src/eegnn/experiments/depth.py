"""Scores against depth on Cora and Minesweeper."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eegnn.studies.figures import draw_lines
from eegnn.studies.study import (
    ACCURACY,
    AUROC,
    Cell,
    Experiment,
    Finding,
    Measured,
    Plan,
    Quantity,
)
from eegnn.studies.tables import each, without_recipe
from eegnn.train.config import Config

#: The panels, their data sets and quantities, and the settings that all models share.
GROUPS: dict[str, tuple[str, Quantity, dict[str, Any]]] = {
    "Cora": (
        "cora",
        ACCURACY,
        {
            "hidden_channels": 64,
            "lr": 0.005,
            "weight_decay": 5e-4,
            "epochs": 150,
            "patience": 40,
            "options": {"dropout": 0.6},
        },
    ),
    "Minesweeper": (
        "minesweeper",
        AUROC,
        {"hidden_channels": 32, "lr": 0.01, "epochs": 300, "options": {"dropout": 0.2}},
    ),
}
DEPTHS = (2, 10, 20, 30, 40, 50)
SPLITS = 3
#: The names of the rows, the models, and what differs from model to model.
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "SAS-GNN": ("sasgnn", {"step_size": 0.5, "weight_scale": 0.1}),
    "A-DGN": ("adgn", {"step_size": 0.1}),
    "GRAFF": ("graff", {"step_size": 0.5}),
    "GCN": ("gcn", {}),
}


def cells(plan: Plan) -> list[Cell]:
    """A table for each data set: a row for each model, a column for each depth."""
    depths = (2, 10) if plan.quick else DEPTHS
    return [
        Cell(
            group,
            row,
            str(depth),
            quantity,
            tuple(each(_config(group, row, depth, plan), "split", plan.over(SPLITS, 1))),
        )
        for group, (_, quantity, _) in GROUPS.items()
        for row in MODELS
        for depth in depths
    ]


def _config(group: str, row: str, depth: int, plan: Plan) -> Config:
    dataset, _, settings = GROUPS[group]
    model, options = MODELS[row]
    own: dict[str, Any] = {
        **settings,
        "num_layers": depth,
        "options": {**settings["options"], **options},
    }
    return without_recipe(dataset, model, {**own, "epochs": 10} if plan.quick else own)


def findings(table: Sequence[Measured]) -> list[Finding]:
    """Who keeps the score at 50 layers."""
    found = []
    for group in GROUPS:
        for row in MODELS:
            line = [m for m in table if (m.cell.group, m.cell.row) == (group, row)]
            found.append(_finding(group, row, line))
    return found


def _finding(group: str, row: str, line: Sequence[Measured]) -> Finding:
    falls = row == "GCN" or (row, group) == ("GRAFF", "Cora")
    claim = f"{group}: {row} " + ("loses more than two points" if falls else "keeps within two")
    scores = [m.mean for m in line if m.mean is not None]
    if len(scores) < len(line):
        return Finding(f"{claim} points of its best" if not falls else claim, None)
    best, deep = max(scores), scores[-1]
    text = f"{claim}: best {best:.1f}, {deep:.1f} at L = {line[-1].cell.column}"
    return Finding(text, (best - deep > 2) == falls)


EXPERIMENT = Experiment(
    name="depth",
    title="Depth on Cora and Minesweeper",
    shows="The figures of the score against depth (fig:depth_performance, fig:mines_performance), "
    "which come without numbers or settings.",
    settings="The same settings for all models and depths: on Cora width 64, lr 0.005, weight "
    "decay 0.0005, dropout 0.6, at most 150 epochs; on Minesweeper width 32, lr 0.01, dropout 0.2, "
    "300 epochs; three splits. Steps of 0.5 for SAS-GNN and GRAFF, of 0.1 for A-DGN; the weights "
    "of SAS-GNN start at a tenth of their usual size, as in depth-webkb. GCN has a weight "
    "matrix for each layer and no residual connections.",
    quick="one split, 10 epochs, two depths",
    minutes=(180, 1),
    cells=cells,
    findings=findings,
    draw=lambda table, path: draw_lines(table, path, "layers"),
)
