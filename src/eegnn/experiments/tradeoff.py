"""Score against parameters and time, with the best settings of each model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eegnn.experiments.heterophilic import DATASETS as NAMES
from eegnn.experiments.heterophilic import QUANTITIES, QUICK
from eegnn.studies.figures import draw_tradeoff
from eegnn.studies.stopwatch import MILLISECONDS, STOPWATCH
from eegnn.studies.study import (
    PARAMETERS,
    Cell,
    Experiment,
    Finding,
    Measured,
    Plan,
    Quantity,
)
from eegnn.studies.tables import each, means, with_recipe_of
from eegnn.train.config import Config
from eegnn.train.recipes import find_recipe

SCORE, COUNT, TIME = "score", "parameters", "inference, ms"
SPLITS = 3
#: tab:model_configs, m' and steps, which are L + 1 for EEGNN; Minesweeper is ours, with the
#: settings of the recipes.
SIZES: dict[str, dict[str, tuple[int, int]]] = {
    "Minesweeper": {"SAS-GNN": (32, 15), "EEGNN": (32, 21), "GCN": (64, 12)},
    "Questions": {
        "SAS-GNN": (64, 9),
        "EEGNN": (64, 21),
        "Co-GNN": (64, 9),
        "Polynormer": (64, 10),
        "SGFormer": (64, 10),
        "GCN": (512, 10),
    },
    "Roman-empire": {
        "SAS-GNN": (128, 12),
        "EEGNN": (128, 21),
        "Co-GNN": (512, 12),
        "Polynormer": (64, 20),
        "SGFormer": (256, 10),
        "GCN": (256, 9),
    },
    "Amazon-ratings": {
        "SAS-GNN": (256, 9),
        "EEGNN": (256, 21),
        "Co-GNN": (256, 9),
        "Polynormer": (256, 20),
        "SGFormer": (64, 10),
        "GCN": (512, 4),
    },
}
MODELS = {
    "SAS-GNN": "sasgnn",
    "EEGNN": "eegnn",
    "Co-GNN": "cognn",
    "Polynormer": "polynormer",
    "SGFormer": "sgformer",
    "GCN": "gcn",
}


def cells(plan: Plan) -> list[Cell]:
    """A table for each data set: a row for each model, with score, parameters and time."""
    found = []
    for group, rows in SIZES.items():
        for row, size in rows.items():
            configs = tuple(each(_config(group, row, size, plan), "split", plan.over(SPLITS, 1)))
            columns: dict[str, Quantity] = {
                SCORE: QUANTITIES[group],
                COUNT: PARAMETERS,
                TIME: MILLISECONDS,
            }
            found += [Cell(group, row, c, quantity, configs) for c, quantity in columns.items()]
    return found


def _config(group: str, row: str, size: tuple[int, int], plan: Plan) -> Config:
    dataset, model = NAMES[group], MODELS[row]
    owner = model if find_recipe(dataset, model) else "gcn"
    settings: dict[str, Any] = {"hidden_channels": size[0], "num_layers": size[1]}
    return with_recipe_of(dataset, model, owner, dataset, settings | (QUICK if plan.quick else {}))


def findings(table: Sequence[Measured]) -> list[Finding]:
    """That SAS-GNN and EEGNN have the fewest parameters."""
    at = means(table)
    found = []
    for group, rows in SIZES.items():
        counts = {row: at[group, row, COUNT].mean for row in rows if (group, row, COUNT) in at}
        known = {row: count for row, count in counts.items() if count is not None}
        claim = f"{group}: SAS-GNN and EEGNN have fewer parameters than the others"
        if len(known) < len(rows):
            found.append(Finding(claim, None))
            continue
        ours = max(known.pop("SAS-GNN"), known.pop("EEGNN"))
        text = f"{claim} ({ours:,.0f}, the next {min(known.values()):,.0f})"
        found.append(Finding(text, ours < min(known.values())))
    return found


EXPERIMENT = Experiment(
    name="tradeoff",
    title="Score, parameters and time",
    shows="The figures of the trade-off (fig:tradeoff_questions, fig:tradeoff_amazon_ratings, "
    "fig:tradeoff_roman_empire), which come without numbers, without NodeFormer.",
    settings="Widths and depths of tab:model_configs, the rest from the recipes (of GCN for "
    "SGFormer), three splits; the median of 30 passes on the CPU. Minesweeper is added, with the "
    "sizes of the recipes. The minutes are estimated: 60 for Minesweeper.",
    quick="one split, 5 epochs, width 32",
    minutes=(9_000, 1),
    cells=cells,
    findings=findings,
    draw=draw_tradeoff,
    measurement=STOPWATCH,
)
