"""How many parameters models have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from eegnn.data.registry import DATASETS
from eegnn.studies.figures import draw_bars
from eegnn.studies.study import PARAMETERS, Cell, Experiment, Finding, Measured, Plan, Score
from eegnn.zoo.registry import ENTRIES, find

GROUPS = {
    "Questions": "questions",
    "Roman-empire": "roman-empire",
    "Minesweeper": "minesweeper",
    "Tolokers": "tolokers",
    "Amazon-ratings": "amazon-ratings",
}
LAYERS = (10, 20)
WIDTH = 32
#: The names of the rows, the models, and the options that the paper's counts imply.
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "GCN": ("gcn", {}),
    "Co-GNN": ("cognn", {"action_layers": 2, "action_channels": 32}),
    "Polynormer": ("polynormer", {"global_layers": 1}),
    "SAS-GNN": ("sasgnn", {"storage": "paper"}),
    "EEGNN": ("eegnn", {"storage": "paper", "head_layers": 2, "head_channels": 32}),
}
#: The heads of EEGNN on Questions are others.
QUESTIONS_HEADS = {"head_layers": 3, "head_channels": 8}

#: tab:runtime_questions and tab:parameter-datasets-models, with 10 and with 20 layers.
PAPER: dict[str, dict[str, tuple[int, int]]] = {
    "Questions": {
        "GCN": (20_288, 30_848),
        "Co-GNN": (34_982, 55_782),
        "Polynormer": (50_404, 80_100),
        "SAS-GNN": (11_840, 11_840),
        "EEGNN": (12_562, 12_562),
    },
    "Roman-empire": {
        "GCN": (20_768, 31_328),
        "Co-GNN": (35_478, 56_278),
        "Polynormer": (48_164, 81_124),
        "SAS-GNN": (12_320, 12_320),
        "EEGNN": (14_562, 14_562),
    },
    "Minesweeper": {
        "GCN": (10_880, 21_440),
        "Co-GNN": (25_574, 46_374),
        "Polynormer": (37_732, 70_692),
        "SAS-GNN": (2_432, 2_432),
        "EEGNN": (4_674, 4_674),
    },
    "Tolokers": {
        "GCN": (10_976, 21_536),
        "Co-GNN": (25_670, 46_470),
        "Polynormer": (37_828, 70_788),
        "SAS-GNN": (2_528, 2_528),
        "EEGNN": (4_770, 4_770),
    },
    "Amazon-ratings": {
        "GCN": (20_352, 30_912),
        "Co-GNN": (35_049, 55_849),
        "Polynormer": (47_306, 80_266),
        "SAS-GNN": (11_904, 11_904),
        "EEGNN": (14_146, 14_146),
    },
}


def cells(plan: Plan) -> list[Cell]:
    """A table for each data set: a row for each model, a column for each depth."""
    return [
        Cell(
            group,
            row,
            f"{layers} layers",
            PARAMETERS,
            paper=Score(told),
            known=_count(group, row, layers),
        )
        for group, rows in PAPER.items()
        for row, counts in rows.items()
        for layers, told in zip(LAYERS, counts, strict=True)
    ]


@cache
def _count(group: str, row: str, layers: int) -> int:
    model, options = MODELS[row]
    if (group, row) == ("Questions", "EEGNN"):
        options = options | QUESTIONS_HEADS
    figures = _figures(group)
    built = find(ENTRIES[model].home)(
        int(figures["features"]), WIDTH, int(figures["classes"]), num_layers=layers, **options
    )
    return sum(parameter.numel() for parameter in built.parameters())


def _figures(group: str) -> Mapping[str, float]:
    return DATASETS[GROUPS[group]].figures


def findings(table: Sequence[Measured]) -> list[Finding]:
    """Which counts agree, and what the differences are."""
    gaps: dict[tuple[str, str, str], float] = {}
    for m in table:
        assert m.cell.paper is not None
        gaps[m.cell.row, m.cell.group, m.cell.column] = m.cell.paper.mean - (m.mean or 0.0)
    others = [gap for (row, *_), gap in gaps.items() if row != "Polynormer"]
    # Per data set, one more decoder, and biases in both: (m' + 2) C.
    decoders = [
        gap == (WIDTH + 2) * _figures(group)["classes"]
        for (row, group, column), gap in gaps.items()
        if row == "Polynormer" and (group, column) != ("Questions", "10 layers")
    ]
    a_layer = 3 * WIDTH**2 + 6 * WIDTH
    slip = gaps["Polynormer", "Questions", "10 layers"] == a_layer + (WIDTH + 2) * 2
    return [
        Finding("all counts of GCN, Co-GNN, SAS-GNN and EEGNN are the paper's", not any(others)),
        Finding(
            "Polynormer has (m' + 2)·C parameters fewer than in the paper: ours has one decoder "
            "without bias, its authors' has one with bias for each phase",
            all(decoders),
        ),
        Finding(
            "the paper's Polynormer on Questions with 10 layers has one more global layer "
            "(3m'² + 6m') than with 20",
            slip,
        ),
    ]


EXPERIMENT = Experiment(
    name="parameters",
    title="Numbers of parameters",
    shows="The counts in tab:runtime_questions and tab:parameter-datasets-models, with width 32.",
    settings="Models are built, not trained. The heads of EEGNN (2 layers of width 32; on "
    "Questions 3 of width 8), the action networks of Co-GNN (2 layers of width 32) and the global "
    "layers of Polynormer (one) are those that the paper's counts imply.",
    quick="there is nothing to leave out",
    minutes=(0.1, 0.1),
    cells=cells,
    findings=findings,
    draw=draw_bars,
)
