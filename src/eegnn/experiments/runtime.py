"""Inference time with 10 and with 20 layers."""

from __future__ import annotations

import operator
from dataclasses import replace
from itertools import product
from typing import Any

from eegnn.experiments.paper import paper_table
from eegnn.experiments.parameters import OPTIONS
from eegnn.studies.configs import model_name, repeat, with_recipe_of
from eegnn.studies.experiment import About, Cell, Cells, Findings, Scope, Score, Table
from eegnn.studies.findings import check, statistic
from eegnn.studies.inference_time import INFERENCE_TIME, MILLISECONDS
from eegnn.studies.tables import by_group, by_row

DATASETS = ("Minesweeper", "Tolokers", "Questions", "Roman-empire", "Amazon-ratings")
#: On another machine: neither better nor worse than the paper's.
ELSEWHERE = replace(MILLISECONDS, better="equal")
#: tab:runtime_questions and tab:runtime-datasets: seconds with 10 and with 20 layers.
PAPER = {layers: paper_table(f"runtime_{layers}") for layers in (10, 20)}


def cells(scope: Scope) -> Cells:
    """A table for each data set: a row for each model, a column for each depth."""
    for group in DATASETS:
        for row, layers in product(PAPER[10], PAPER):
            settings: dict[str, Any] = {
                "num_layers": layers + (row == "EEGNN"),  # L of EEGNN counts from 0
                "hidden_channels": 32,
                "options": OPTIONS[row] if row in ("Co-GNN", "Polynormer") else {},
            }
            if scope.quick or row != "EEGNN":  # weights change the time of EEGNN alone
                settings["epochs"] = 2
            config = with_recipe_of("eegnn", group.lower(), model_name(row), settings)
            runs = repeat(config, "split", scope.numbers(1))
            paper = Score(1000 * PAPER[layers][row][group].mean)
            yield Cell(group, row, f"{layers} layers", ELSEWHERE, runs, paper)


def _growth(row: str, group: str) -> float:
    """Return the paper's time with 20 layers as a multiple of that with 10."""
    return PAPER[20][row][group].mean / PAPER[10][row][group].mean


def findings(table: Table) -> Findings:
    """The time of EEGNN grows less with the budget than that of SAS-GNN."""
    for group, results in by_group(table).items():
        ratios = {
            row: statistic(lambda times: times[1] / times[0], (result.mean for result in line))
            for row, line in by_row(results).items()
        }
        growth = ", ".join(
            f"{row} × {ratio:.2f}, the paper × {_growth(row, group):.2f}"
            for row, ratio in ratios.items()
            if ratio is not None
        )
        yield check(
            f"{group}: from 10 to 20 layers the time of EEGNN grows less than that of SAS-GNN",
            (ratios["EEGNN"], ratios["SAS-GNN"]),
            operator.lt,
            f" ({growth})",
        )


ABOUT = About(
    title="Inference time",
    shows="tab:runtime_questions and tab:runtime-datasets. The paper's seconds are those of its "
    "machine, which it does not name; what can be compared is how they grow from 10 to 20 layers.",
    settings="Width 32, the median of 30 passes on the device of the run, or of as many as fit "
    "into 20 seconds, nothing else running. EEGNN has one step more than the others and is trained "
    "with its recipe, since its exits decide its time: all nodes are computed until the last one "
    "has left. The others train for two epochs, which changes nothing. Run it alone on an idle "
    "machine.",
    quick="2 epochs for all",
    minutes=(600, 2),
    measurement=INFERENCE_TIME,
)
