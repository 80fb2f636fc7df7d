"""Inference time with 10 and with 20 layers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from eegnn.studies.figures import draw_bars
from eegnn.studies.stopwatch import MILLISECONDS, STOPWATCH
from eegnn.studies.study import Cell, Experiment, Finding, Measured, Plan, Score
from eegnn.studies.tables import each, means, with_recipe_of
from eegnn.train.config import Config

DATASETS = {
    "Minesweeper": "minesweeper",
    "Tolokers": "tolokers",
    "Questions": "questions",
    "Roman-empire": "roman-empire",
    "Amazon-ratings": "amazon-ratings",
}
LAYERS = (10, 20)
#: On another machine: neither better nor worse than the paper's.
ELSEWHERE = replace(MILLISECONDS, better="equal")
#: The names of the rows, the models, and what differs from model to model.
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "SAS-GNN": ("sasgnn", {}),
    "EEGNN": ("eegnn", {}),
    "GCN": ("gcn", {}),
    "Co-GNN": ("cognn", {"action_layers": 2, "action_channels": 32}),
    "Polynormer": ("polynormer", {"global_layers": 1}),
}
#: tab:runtime_questions and tab:runtime-datasets: seconds with 10 and with 20 layers.
PAPER: dict[str, dict[str, tuple[float, float]]] = {
    "Minesweeper": {
        "GCN": (0.0139, 0.0273),
        "Co-GNN": (0.0315, 0.0665),
        "Polynormer": (0.01509, 0.0274),
        "SAS-GNN": (0.0177, 0.0371),
        "EEGNN": (0.0153, 0.0209),
    },
    "Tolokers": {
        "GCN": (0.0286, 0.0428),
        "Co-GNN": (0.0498, 0.0874),
        "Polynormer": (0.0183, 0.0322),
        "SAS-GNN": (0.0268, 0.0437),
        "EEGNN": (0.0227, 0.0283),
    },
    "Questions": {
        "GCN": (0.0168, 0.0251),
        "Co-GNN": (0.0352, 0.0598),
        "Polynormer": (0.0278, 0.0381),
        "SAS-GNN": (0.0279, 0.0425),
        "EEGNN": (0.0216, 0.0257),
    },
    "Roman-empire": {
        "GCN": (0.0266, 0.0411),
        "Co-GNN": (0.0553, 0.0739),
        "Polynormer": (0.0192, 0.0312),
        "SAS-GNN": (0.0323, 0.0510),
        "EEGNN": (0.0288, 0.0290),
    },
    "Amazon-ratings": {
        "GCN": (0.0269, 0.0370),
        "Co-GNN": (0.0562, 0.0838),
        "Polynormer": (0.0191, 0.0310),
        "SAS-GNN": (0.0278, 0.0442),
        "EEGNN": (0.0267, 0.0227),
    },
}


def cells(plan: Plan) -> list[Cell]:
    """A table for each data set: a row for each model, a column for each depth."""
    return [
        Cell(
            group,
            row,
            f"{layers} layers",
            ELSEWHERE,
            tuple(each(_config(group, row, layers, plan), "split", plan.over(1, 1))),
            Score(1000 * seconds),
        )
        for group in DATASETS
        for row in MODELS
        for layers, seconds in zip(LAYERS, PAPER[group][row], strict=True)
    ]


def _config(group: str, row: str, layers: int, plan: Plan) -> Config:
    model, options = MODELS[row]
    settings: dict[str, Any] = {
        "num_layers": layers + (model == "eegnn"),  # L of EEGNN counts from 0
        "hidden_channels": 32,
        "options": options,
    }
    # Weights change the time of EEGNN alone.
    if plan.quick or model != "eegnn":
        settings["epochs"] = 2
    return with_recipe_of(DATASETS[group], model, "eegnn", DATASETS[group], settings)


def findings(table: Sequence[Measured]) -> list[Finding]:
    """That the time of EEGNN grows less with the budget than that of SAS-GNN."""
    at = means(table)
    found = []
    for group in DATASETS:
        ratios: dict[str, float] = {}
        for row in MODELS:
            line = [at.get((group, row, f"{layers} layers")) for layers in LAYERS]
            some = [m.mean for m in line if m is not None and m.mean is not None]
            if len(some) == len(LAYERS):
                ratios[row] = some[1] / some[0]
        claim = f"{group}: from 10 to 20 layers the time of EEGNN grows less than that of SAS-GNN"
        if "EEGNN" not in ratios or "SAS-GNN" not in ratios:
            found.append(Finding(claim, None))
            continue
        said = ", ".join(
            f"{row} × {ratio:.2f}, the paper × {PAPER[group][row][1] / PAPER[group][row][0]:.2f}"
            for row, ratio in ratios.items()
        )
        found.append(Finding(f"{claim} ({said})", ratios["EEGNN"] < ratios["SAS-GNN"]))
    return found


EXPERIMENT = Experiment(
    name="runtime",
    title="Inference time",
    shows="tab:runtime_questions and tab:runtime-datasets. The paper's seconds are those of its "
    "machine, which it does not name; what can be compared is how they grow from 10 to 20 layers.",
    settings="Width 32, the median of 30 passes on the CPU, or of as many as fit into 20 seconds, "
    "nothing else running. EEGNN has one step more than the others and is trained with its recipe, "
    "since its exits decide its time: all nodes are computed until the last one has left. The "
    "others train for two epochs, which changes nothing. Run it alone on an idle machine. 50 of "
    "the minutes are for Minesweeper and Tolokers.",
    quick="2 epochs for all",
    minutes=(600, 2),
    cells=cells,
    findings=findings,
    draw=draw_bars,
    measurement=STOPWATCH,
)
