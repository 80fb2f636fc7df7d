"""How many parameters models have."""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import Any

from eegnn.data.registry import DATASETS
from eegnn.experiments.paper import paper_table
from eegnn.io import MODELS
from eegnn.studies.configs import model_name
from eegnn.studies.experiment import About, Cell, Cells, Finding, Findings, Scope, Table
from eegnn.studies.quantities import PARAMETERS
from eegnn.train.models import NAMES

GROUPS = ("Questions", "Roman-empire", "Minesweeper", "Tolokers", "Amazon-ratings")
WIDTH = 32
#: The options that the paper's counts imply.
OPTIONS: dict[str, dict[str, Any]] = {
    "Co-GNN": {"action_layers": 2, "action_channels": 32},
    "Polynormer": {"global_layers": 1},
    "SAS-GNN": {"storage": "paper"},
    "EEGNN": {"storage": "paper", "head_layers": 2, "head_channels": 32},
}
#: The heads of EEGNN on Questions are others.
QUESTIONS_HEADS = {"head_layers": 3, "head_channels": 8}
#: tab:runtime_questions and tab:parameter-datasets-models, with 10 and with 20 layers.
PAPER = {layers: paper_table(f"parameters_{layers}") for layers in (10, 20)}


def cells(scope: Scope) -> Cells:
    """A table for each data set: a row for each model, a column for each depth."""
    for group in GROUPS:
        for row, layers in product(PAPER[10], PAPER):
            heads = QUESTIONS_HEADS if (group, row) == ("Questions", "EEGNN") else {}
            options = {"num_layers": layers, **OPTIONS.get(row, {}), **heads}
            count = count_parameters(group, row, WIDTH, **options)
            paper = PAPER[layers][row][group]
            yield Cell(group, row, f"{layers} layers", PARAMETERS, (), paper, count)


@cache
def count_parameters(group: str, row: str, width: int, **options: Any) -> int:
    """Build a model for a data set, both as the paper prints them, and count its parameters."""
    figures = DATASETS[group.lower()].figures
    sizes = int(figures["features"]), width, int(figures["classes"])
    built = MODELS[NAMES[model_name(row)]](*sizes, **options)
    return sum(parameter.numel() for parameter in built.parameters())


def findings(table: Table) -> Findings:
    """Which counts agree, and what the differences are."""
    gaps: dict[tuple[str, str, str], float] = {}
    for result in table:
        cell = result.cell
        assert cell.paper is not None
        gaps[cell.row, cell.group, cell.column] = cell.paper.mean - (result.mean or 0.0)
    others = [gap for (row, *_), gap in gaps.items() if row != "Polynormer"]
    yield Finding("all counts of GCN, Co-GNN, SAS-GNN and EEGNN are the paper's", not any(others))
    slip = gaps.pop(("Polynormer", "Questions", "10 layers"))
    yield Finding(
        "Polynormer has (m' + 2)·C parameters fewer than in the paper: ours has one decoder "
        "without bias, its authors' has one with bias for each phase",
        all(
            gap == (WIDTH + 2) * DATASETS[group.lower()].figures["classes"]
            for (row, group, _), gap in gaps.items()
            if row == "Polynormer"
        ),
    )
    yield Finding(
        "the paper's Polynormer on Questions with 10 layers has one more global layer "
        "(3m'² + 6m') than with 20",
        slip == 3 * WIDTH**2 + 6 * WIDTH + (WIDTH + 2) * 2,
    )


ABOUT = About(
    title="Numbers of parameters",
    shows="The counts in tab:runtime_questions and tab:parameter-datasets-models, with width 32.",
    settings="Models are built, not trained. The heads of EEGNN (2 layers of width 32; on "
    "Questions 3 of width 8), the action networks of Co-GNN (2 layers of width 32) and the global "
    "layers of Polynormer (one) are those that the paper's counts imply.",
    quick="there is nothing to leave out",
    minutes=(0.1, 0.1),
)
