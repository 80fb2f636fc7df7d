"""SAS-GNN with up to 100 layers, and up to 256 channels."""

from __future__ import annotations

from eegnn.data.registry import DATASETS
from eegnn.experiments.parameters import count_parameters
from eegnn.studies.configs import Runs, repeat, with_recipe
from eegnn.studies.experiment import (
    Cell,
    Experiment,
    Finding,
    Scope,
    Score,
    Table,
    by_group,
    by_row,
)
from eegnn.studies.figures import draw_lines
from eegnn.studies.findings import check
from eegnn.studies.quantities import AUROC, PARAMETERS

SCORES, COUNTS = "Minesweeper", "Parameters"
LAYERS = (10, 50, 100)
#: tab:100_scaling_layer: scores with 10, 50 and 100 layers by width, and parameters.
PAPER_SCORES = {
    32: ((92.95, 0.5), (93.05, 0.3), (93.64, 0.2)),
    64: ((91.95, 0.1), (92.54, 0.1), (92.85, 0.3)),
    128: ((91.20, 0.2), (92.87, 0.1), (93.24, 0.1)),
    256: ((90.73, 0.1), (92.67, 0.2), (92.90, 0.3)),
}
PAPER_COUNTS = {32: 2_496, 64: 9_088, 128: 34_560, 256: 134_656}


def cells(scope: Scope) -> list[Cell]:
    """A row for each width, a column for each depth; and the parameters."""
    widths = scope.choose(tuple(PAPER_SCORES), (32, 64))
    scores = [
        Cell(SCORES, f"m' = {width}", str(depth), AUROC, _runs(width, depth, scope), Score(*score))
        for depth, *numbers in zip(LAYERS, *(PAPER_SCORES[w] for w in widths), strict=True)
        for width, score in zip(widths, numbers, strict=True)
        if not (scope.quick and depth == 100)
    ]
    counts = [
        Cell(
            COUNTS,
            f"m' = {width}",
            "any",
            PARAMETERS,
            (),
            Score(PAPER_COUNTS[width]),
            _count(width),
        )
        for width in widths
    ]
    return scores + counts


def _runs(width: int, depth: int, scope: Scope) -> Runs:
    settings = {"epochs": scope.choose(1000, 3), "hidden_channels": width, "num_layers": depth}
    config = with_recipe("minesweeper", "sasgnn", settings)
    return repeat(config, "split", scope.numbers(3))


def _count(width: int) -> int:
    figures = DATASETS["minesweeper"].figures
    sizes = int(figures["features"]), width, int(figures["classes"])
    return count_parameters("sasgnn", *sizes, storage="paper")


def findings(table: Table) -> list[Finding]:
    """More layers do no harm, and how the counts of parameters differ."""
    groups = by_group(table)
    found = []
    for row, line in by_row(groups[SCORES]).items():
        numbers = ", ".join(["{:.2f}"] * len(line))
        found.append(
            check(
                f"{row}: the score does not fall as layers are added",
                [result.mean for result in line],
                lambda first, *others: others[-1] >= first,
                f" ({numbers})",
            )
        )
    claim = (
        "the paper counts 2m' parameters more than ours, and more than its own "
        "tab:parameter-datasets-models does for m' = 32: as many as one more decoder"
    )
    same = all(PAPER_COUNTS[width] - _count(width) == 2 * width for width in PAPER_COUNTS)
    return [*found, Finding(claim, same)]


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
    draw=lambda table, path: draw_lines(by_group(table)[SCORES], path, "layers"),
    why="The settings of the paper are not known; its deviations are smaller than those between "
    "splits in its other tables (0.61 for the same model).",
)
