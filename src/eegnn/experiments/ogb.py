"""The Open Graph Benchmark: one large graph, and many small ones."""

from __future__ import annotations

from typing import Any

from eegnn.studies.configs import model_name, repeat, with_recipe
from eegnn.studies.experiment import Cell, Cells, Experiment, Scope, Score
from eegnn.studies.quantities import AUROC, Quantity, percent

QUANTITIES: dict[str, Quantity] = {"ogbg-molhiv": AUROC, "ogbn-arxiv": percent("accuracy")}
#: The rows of tab:ogb_molhiv_results and tab:ogb_arxiv_results.
PAPER: dict[str, dict[str, Score]] = {
    "ogbg-molhiv": {
        "SAS-GNN edge": Score(77.26, 1.60),
        "EEGNN edge": Score(77.39, 1.00),
        "SAS-GNN ours": Score(78.09, 0.50),
        "EEGNN ours": Score(78.05, 0.80),
    },
    "ogbn-arxiv": {"SAS-GNN": Score(71.83, 0.20), "EEGNN": Score(71.47, 0.40)},
}


def cells(scope: Scope) -> Cells:
    """A table for each data set: a row for each model."""
    quick: dict[str, Any] = scope.choose({}, {"epochs": 1, "hidden_channels": 8})
    for dataset, rows in PAPER.items():
        for row, score in rows.items():
            model, _, variant = row.partition(" ")
            options = {"edge_term": "linear"} if variant == "edge" else {}
            config = with_recipe(dataset, model_name(model), {"options": options, **quick})
            runs = repeat(config, "seed", scope.numbers(4))
            yield Cell(dataset, row, "test", QUANTITIES[dataset], runs, score)


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
)
