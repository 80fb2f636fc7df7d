"""SAS-GNN with up to 100 layers, and up to 256 channels."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from eegnn.data.registry import DATASETS
from eegnn.nn.sas_gnn import SASGNN
from eegnn.studies.figures import draw_lines
from eegnn.studies.study import (
    AUROC,
    PARAMETERS,
    Cell,
    Experiment,
    Finding,
    Measured,
    Plan,
    Score,
)
from eegnn.studies.tables import with_recipe

GROUP, COUNTS = "Minesweeper", "Parameters"
LAYERS = (10, 50, 100)
SPLITS = 3
#: tab:100_scaling_layer: scores with 10, 50 and 100 layers, and parameters.
PAPER: dict[int, tuple[Score, Score, Score, int]] = {
    32: (Score(92.95, 0.5), Score(93.05, 0.3), Score(93.64, 0.2), 2_496),
    64: (Score(91.95, 0.1), Score(92.54, 0.1), Score(92.85, 0.3), 9_088),
    128: (Score(91.20, 0.2), Score(92.87, 0.1), Score(93.24, 0.1), 34_560),
    256: (Score(90.73, 0.1), Score(92.67, 0.2), Score(92.90, 0.3), 134_656),
}


def cells(plan: Plan) -> list[Cell]:
    """A row for each width, a column for each depth; and the parameters."""
    settings: dict[str, Any] = {"epochs": 3} if plan.quick else {"epochs": 1000}
    widths, layers = ((32, 64), (10, 50)) if plan.quick else (tuple(PAPER), LAYERS)
    found = []
    for depth in layers:
        for width in widths:
            own = {**settings, "hidden_channels": width, "num_layers": depth}
            configs = with_recipe("minesweeper", "sasgnn", "split", plan.over(SPLITS, 1), own)
            score = PAPER[width][LAYERS.index(depth)]
            assert isinstance(score, Score)
            found.append(Cell(GROUP, f"m' = {width}", str(depth), AUROC, tuple(configs), score))
    return found + [
        Cell(COUNTS, f"m' = {width}", "any", PARAMETERS, (), Score(PAPER[width][3]), _count(width))
        for width in widths
    ]


@cache
def _count(width: int) -> int:
    figures = DATASETS["minesweeper"].figures
    model = SASGNN(int(figures["features"]), width, int(figures["classes"]), storage="paper")
    return sum(parameter.numel() for parameter in model.parameters())


def findings(table: Sequence[Measured]) -> list[Finding]:
    """That more layers do no harm, and how the counts of parameters differ."""
    found = []
    scores = [m for m in table if m.cell.group == GROUP]
    for row in dict.fromkeys(m.cell.row for m in scores):
        line = [m.mean for m in scores if m.cell.row == row]
        claim = f"{row}: the score does not fall as layers are added"
        known = [value for value in line if value is not None]
        if len(known) < len(line):
            found.append(Finding(claim, None))
        else:
            said = ", ".join(f"{value:.2f}" for value in known)
            found.append(Finding(f"{claim} ({said})", known[-1] >= known[0]))
    counts = [m for m in table if m.cell.group == COUNTS]
    gaps = {
        m.cell.row: (m.cell.paper.mean if m.cell.paper else 0.0) - (m.mean or 0.0) for m in counts
    }
    same = all(gap == 2 * int(row.rpartition(" ")[2]) for row, gap in gaps.items())
    return [
        *found,
        Finding(
            "the paper counts 2m' parameters more than ours, and more than its own "
            "tab:parameter-datasets-models does for m' = 32: as many as one more decoder",
            same,
        ),
    ]


EXPERIMENT = Experiment(
    name="depth-width",
    title="SAS-GNN with up to 100 layers",
    shows="tab:100_scaling_layer, which does not name its data set: scores and counts are those of "
    "Minesweeper.",
    settings="The recipe of SAS-GNN on Minesweeper with 1000 epochs and another width or depth, "
    "three splits. A run with 10 layers of width 32 takes 3 minutes of a core; the time grows with "
    "layers, and ten times from width 32 to 256.",
    quick="one split, 3 epochs, widths 32 and 64, 10 and 50 layers",
    minutes=(1_800, 1),
    cells=cells,
    findings=findings,
    draw=lambda table, path: draw_lines(
        [m for m in table if m.cell.group == GROUP], path, "layers"
    ),
    why="The settings of the paper are not known; its deviations are smaller than those between "
    "splits in its other tables (0.61 for the same model).",
)
