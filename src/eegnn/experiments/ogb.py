"""The Open Graph Benchmark: one large graph, and many small ones."""

from __future__ import annotations

from typing import Any

from eegnn.studies.figures import draw_bars
from eegnn.studies.study import AUROC, Cell, Experiment, Plan, Quantity, Score, percent
from eegnn.studies.tables import with_recipe

SEEDS = 4
QUICK: dict[str, Any] = {"epochs": 1, "hidden_channels": 8}
#: The names of the rows, the models, and what differs from their recipes.
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "SAS-GNN": ("sasgnn", {}),
    "EEGNN": ("eegnn", {}),
    "SAS-GNN edge": ("sasgnn", {"edge_term": "linear"}),
    "EEGNN edge": ("eegnn", {"edge_term": "linear"}),
    "SAS-GNN ours": ("sasgnn", {}),
    "EEGNN ours": ("eegnn", {}),
}
#: The data set, the quantity, and the rows of tab:ogb_molhiv_results and tab:ogb_arxiv_results.
PAPER: dict[str, tuple[str, Quantity, dict[str, Score]]] = {
    "ogbg-molhiv": (
        "ogbg-molhiv",
        AUROC,
        {
            "SAS-GNN edge": Score(77.26, 1.60),
            "EEGNN edge": Score(77.39, 1.00),
            "SAS-GNN ours": Score(78.09, 0.50),
            "EEGNN ours": Score(78.05, 0.80),
        },
    ),
    "ogbn-arxiv": (
        "ogbn-arxiv",
        percent("accuracy"),
        {"SAS-GNN": Score(71.83, 0.20), "EEGNN": Score(71.47, 0.40)},
    ),
}


def cells(plan: Plan) -> list[Cell]:
    """A table for each data set: a row for each model."""
    found = []
    for group, (dataset, quantity, rows) in PAPER.items():
        for row, score in rows.items():
            model, options = MODELS[row]
            settings = {"options": options, **(QUICK if plan.quick else {})}
            configs = with_recipe(dataset, model, "seed", plan.over(SEEDS, 1), settings)
            found.append(Cell(group, row, "test", quantity, tuple(configs), score))
    return found


EXPERIMENT = Experiment(
    name="ogb",
    title="The Open Graph Benchmark",
    shows="Our rows of tab:ogb_molhiv_results and tab:ogb_arxiv_results.",
    settings="The recipes, ours, since the paper's settings are not published, with four seeds. On "
    "ogbg-molhiv a run of SAS-GNN takes about two and a half hours of a core, of EEGNN six, by "
    "their size; ogbn-arxiv is estimated likewise.",
    quick="one epoch of width 8, one seed",
    minutes=(7_000, 6),
    cells=cells,
    draw=draw_bars,
)
