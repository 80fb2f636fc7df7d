"""Scores against depth on Cora and Minesweeper."""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Any

from eegnn.studies.configs import model_name, repeat, without_recipe
from eegnn.studies.experiment import About, Cell, Cells, Findings, Scope, Table
from eegnn.studies.figures import draw_lines
from eegnn.studies.findings import check, statistic
from eegnn.studies.quantities import ACCURACY, AUROC, Quantity
from eegnn.studies.tables import by_line

QUANTITIES: dict[str, Quantity] = {"Cora": ACCURACY, "Minesweeper": AUROC}
#: What all models share.
SETTINGS: dict[str, dict[str, Any]] = {
    "Cora": {
        "hidden_channels": 64,
        "lr": 0.005,
        "weight_decay": 5e-4,
        "epochs": 150,
        "patience": 40,
        "options": {"dropout": 0.6},
    },
    "Minesweeper": {"hidden_channels": 32, "lr": 0.01, "epochs": 300, "options": {"dropout": 0.2}},
}
#: What differs from model to model.
OPTIONS: dict[str, dict[str, Any]] = {
    "SAS-GNN": {"step_size": 0.5, "weight_scale": 0.1},
    "A-DGN": {"step_size": 0.1},
    "GRAFF": {"step_size": 0.5},
    "GCN": {},
}


def cells(scope: Scope) -> Cells:
    """A table for each data set: a row for each model, a column for each depth."""
    depths = scope.choose((2, 10, 20, 30, 40, 50), (2, 10))
    for group, row, depth in product(QUANTITIES, OPTIONS, depths):
        settings = {
            **SETTINGS[group],
            **scope.choose({}, {"epochs": 10}),
            "num_layers": depth,
            "options": SETTINGS[group]["options"] | OPTIONS[row],
        }
        config = without_recipe(group.lower(), model_name(row), settings)
        runs = repeat(config, "split", scope.numbers(3))
        yield Cell(group, row, str(depth), QUANTITIES[group], runs)


def findings(table: Table) -> Findings:
    """Which models keep the score at 50 layers."""
    for (group, row), line in by_line(table).items():
        falls = row == "GCN" or (row, group) == ("GRAFF", "Cora")
        claim = "loses more than two points" if falls else "keeps within two points of its best"
        scores = [result.mean for result in line]
        yield check(
            f"{group}: {row} {claim}",
            (statistic(max, scores), scores[-1]),
            lambda best, deepest, falls=falls: (best - deepest > 2) == falls,
            f": best {{:.1f}}, {{:.1f}} at L = {line[-1].cell.column}",
        )


ABOUT = About(
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
    draw=partial(draw_lines, x_label="layers"),
)
