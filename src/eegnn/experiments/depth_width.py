"""SAS-GNN with up to 100 layers, and up to 256 channels."""

from __future__ import annotations

from itertools import product

from eegnn.experiments.parameters import count_parameters
from eegnn.studies.configs import repeat, with_recipe
from eegnn.studies.experiment import About, Cell, Cells, Finding, Findings, Scope, Score, Table
from eegnn.studies.figures import draw_lines
from eegnn.studies.findings import check
from eegnn.studies.quantities import AUROC, PARAMETERS
from eegnn.studies.tables import by_group, by_row

SCORES, COUNTS = "Minesweeper", "Parameters"
#: tab:100_scaling_layer: scores by layers and width, and parameters by width.
PAPER_SCORES = {
    10: {32: (92.95, 0.5), 64: (91.95, 0.1), 128: (91.20, 0.2), 256: (90.73, 0.1)},
    50: {32: (93.05, 0.3), 64: (92.54, 0.1), 128: (92.87, 0.1), 256: (92.67, 0.2)},
    100: {32: (93.64, 0.2), 64: (92.85, 0.3), 128: (93.24, 0.1), 256: (92.90, 0.3)},
}
PAPER_COUNTS = {32: 2_496, 64: 9_088, 128: 34_560, 256: 134_656}


def cells(scope: Scope) -> Cells:
    """A row for each width, a column for each depth; and the parameters."""
    widths, depths = scope.choose(((32, 64, 128, 256), (10, 50, 100)), ((32, 64), (10, 50)))
    for depth, width in product(depths, widths):
        sizes = {"hidden_channels": width, "num_layers": depth}
        config = with_recipe("minesweeper", "sasgnn", {"epochs": scope.choose(1000, 3), **sizes})
        runs, paper = repeat(config, "split", scope.numbers(3)), Score(*PAPER_SCORES[depth][width])
        yield Cell(SCORES, f"m' = {width}", str(depth), AUROC, runs, paper)
    for width in widths:
        count, paper = _count(width), Score(PAPER_COUNTS[width])
        yield Cell(COUNTS, f"m' = {width}", "any", PARAMETERS, (), paper, count)


def _count(width: int) -> int:
    return count_parameters("Minesweeper", "SAS-GNN", width, storage="paper")


def findings(table: Table) -> Findings:
    """More layers do no harm, and how the counts of parameters differ."""
    for row, line in by_row(by_group(table)[SCORES]).items():
        yield check(
            f"{row}: the score does not fall as layers are added",
            [result.mean for result in line],
            lambda first, *others: others[-1] >= first,
            f" ({', '.join(['{:.2f}'] * len(line))})",
        )
    yield Finding(
        "the paper counts 2m' parameters more than ours, and more than its own "
        "tab:parameter-datasets-models does for m' = 32: as many as one more decoder",
        all(PAPER_COUNTS[width] - _count(width) == 2 * width for width in PAPER_COUNTS),
    )


ABOUT = About(
    title="SAS-GNN with up to 100 layers",
    shows="tab:100_scaling_layer, which does not name its data set: scores and counts are those of "
    "Minesweeper.",
    settings="The recipe of SAS-GNN on Minesweeper with 1000 epochs and another width or depth, "
    "three splits. A run with 10 layers of width 32 takes 3 minutes of a core; the time grows with "
    "layers, and ten times from width 32 to 256.",
    quick="one split, 3 epochs, widths 32 and 64, 10 and 50 layers",
    minutes=(1_800, 1),
    draw=lambda table, path: draw_lines(by_group(table)[SCORES], path, "layers"),
    why="The settings of the paper are not known; its deviations are smaller than those between "
    "splits in its other tables (0.61 for the same model).",
)
