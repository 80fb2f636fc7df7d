"""Score against parameters and time, with the best settings of each model."""

from __future__ import annotations

import operator
from functools import partial

from eegnn.experiments.heterophilic import QUANTITIES, QUICK
from eegnn.studies.configs import model_name, repeat, with_recipe_of
from eegnn.studies.experiment import About, Cells, Findings, Scope, Table
from eegnn.studies.figures import draw_tradeoff
from eegnn.studies.findings import check, means, statistic
from eegnn.studies.inference_time import INFERENCE_TIME, MILLISECONDS
from eegnn.studies.quantities import PARAMETERS
from eegnn.studies.tables import row_cells
from eegnn.train.recipes import find_recipe

SCORE, COUNT, TIME = "score", "parameters", "inference, ms"
#: tab:model_configs, m' and steps, which are L + 1 for EEGNN; Minesweeper is ours, with the
#: settings of the recipes, and those of GCN for Co-GNN, SGFormer and
#: NodeFormer.
SIZES: dict[str, dict[str, tuple[int, int]]] = {
    "Minesweeper": {
        "SAS-GNN": (32, 15), "EEGNN": (32, 21), "Co-GNN": (64, 12), "Polynormer": (512, 10),
        "SGFormer": (64, 12), "NodeFormer": (64, 12), "GCN": (64, 12),
    },
    "Questions": {
        "SAS-GNN": (64, 9), "EEGNN": (64, 21), "Co-GNN": (64, 9), "Polynormer": (64, 10),
        "SGFormer": (64, 10), "NodeFormer": (64, 10), "GCN": (512, 10),
    },
    "Roman-empire": {
        "SAS-GNN": (128, 12), "EEGNN": (128, 21), "Co-GNN": (512, 12), "Polynormer": (64, 20),
        "SGFormer": (256, 10), "NodeFormer": (256, 10), "GCN": (256, 9),
    },
    "Amazon-ratings": {
        "SAS-GNN": (256, 9), "EEGNN": (256, 21), "Co-GNN": (256, 9), "Polynormer": (256, 20),
        "SGFormer": (64, 10), "NodeFormer": (64, 10), "GCN": (512, 4),
    },
}  # fmt: skip


def cells(scope: Scope) -> Cells:
    """A table for each data set: a row for each model, with score, parameters and time."""
    for group, rows in SIZES.items():
        quantities = {SCORE: QUANTITIES[group], COUNT: PARAMETERS, TIME: MILLISECONDS}
        for row, (width, layers) in rows.items():
            dataset, model = group.lower(), "tuned-gcn" if row == "GCN" else model_name(row)
            owner = model if find_recipe(dataset, model) else "tuned-gcn"
            settings = {"hidden_channels": width, "num_layers": layers} | scope.choose({}, QUICK)
            config = with_recipe_of(owner, dataset, model, settings)
            runs = repeat(config, "split", scope.numbers(3))
            yield from row_cells(group, row, quantities, runs)


def findings(table: Table) -> Findings:
    """SAS-GNN and EEGNN have the fewest parameters."""
    at = means(table)
    for group, rows in SIZES.items():
        counts = {row: at[group, row, COUNT] for row in rows}
        ours = [counts.pop("SAS-GNN"), counts.pop("EEGNN")]
        yield check(
            f"{group}: SAS-GNN and EEGNN have fewer parameters than the others",
            (statistic(max, ours), statistic(min, counts.values())),
            operator.lt,
            " ({:,.0f}, the next {:,.0f})",
        )


ABOUT = About(
    title="Score, parameters and time",
    shows="The figures of the trade-off (fig:tradeoff_questions, fig:tradeoff_amazon_ratings, "
    "fig:tradeoff_roman_empire), which come without numbers.",
    settings="Widths and depths of tab:model_configs, the rest from the recipes (of GCN, which is "
    "that of Luo, Shi and Wu, for SGFormer and NodeFormer too), three splits; the median of 30 "
    "passes on the CPU. Minesweeper is added, with the sizes of the recipes, and those of GCN for "
    "Co-GNN, SGFormer and NodeFormer.",
    quick="one split, 5 epochs, width 32",
    minutes=(9_000, 1),
    draw=partial(draw_tradeoff, score=SCORE, costs=(COUNT, TIME), log_x=True),
    measurement=INFERENCE_TIME,
)
