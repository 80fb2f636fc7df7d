"""EEGNN on Peptides-struct with other widths and budgets."""

from __future__ import annotations

from typing import Any

from eegnn.experiments.lrgb import MAE_4, SEEDS
from eegnn.studies.configs import repeat, with_recipe
from eegnn.studies.experiment import About, Cells, Scope, Score
from eegnn.studies.figures import draw_exits
from eegnn.studies.quantities import MEAN_EXIT, PARAMETERS, Quantity
from eegnn.studies.tables import row_cells

QUANTITIES: dict[str, Quantity] = {
    "MAE": MAE_4,
    "parameters": PARAMETERS,
    "mean exit layer": MEAN_EXIT,
}
#: tab:peptides_exit: (m', L), the error and the parameters.
PAPER: dict[tuple[int, int], tuple[Score, Score]] = {
    (50, 10): (Score(0.2783, 0.0120), Score(21_599)),
    (100, 10): (Score(0.2668, 0.0065), Score(63_649)),
    (200, 10): (Score(0.2607, 0.0049), Score(207_749)),
    (300, 10): (Score(0.2532, 0.0050), Score(431_849)),
    (300, 20): (Score(0.2548, 0.0057), Score(431_849)),
    (300, 50): (Score(0.2572, 0.0066), Score(431_849)),
}
# With 50 layers of width 300, batches of 32 graphs take 2 GB; the recipe's 200 would take about 12.
QUICK: dict[str, Any] = {"epochs": 1, "batch_size": 32}


def cells(scope: Scope) -> Cells:
    """A row for each setting: error, parameters and exits."""
    dataset = scope.choose("peptides-struct", "peptides-struct@0.05")
    for (width, budget), (error, parameters) in PAPER.items():
        sizes = {"hidden_channels": width, "num_layers": budget + 1}  # the paper counts from 0
        config = with_recipe(dataset, "eegnn", sizes | scope.choose({}, QUICK))
        row, paper = f"m' = {width}, L = {budget}", {"MAE": error, "parameters": parameters}
        runs = repeat(config, "seed", scope.numbers(SEEDS))
        yield from row_cells("Peptides-struct", row, QUANTITIES, runs, paper)


ABOUT = About(
    title="Robustness on Peptides-struct",
    shows="tab:peptides_exit and fig:peptides_exit_analysis.",
    settings="The recipe of EEGNN with other widths and budgets (L + 1 steps, since the paper "
    "counts from 0), four seeds. The parameters are those of our models, whose heads may be others "
    "than the paper's.",
    quick="a twentieth of the graphs, one epoch, batches of 32, one seed",
    minutes=(250_000, 8),
    draw=draw_exits,
    needs="a GPU, or a hundred cores",
)
