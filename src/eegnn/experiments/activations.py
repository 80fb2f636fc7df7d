"""Which activation: tanh, ReLU, or the paper's ReLU∘tanh."""

from __future__ import annotations

from eegnn.experiments.heterophilic import QUANTITIES, QUICK, SPLITS
from eegnn.experiments.paper import paper_table
from eegnn.studies.configs import Runs, model_name, repeat, with_recipe_of
from eegnn.studies.experiment import About, Cells, Findings, Scope, Table
from eegnn.studies.findings import check, listing, means
from eegnn.studies.tables import paper_cells

GROUP = "Activations"
#: τ, chosen by validation for each model and activation.
STEP_SIZES = (0.1, 0.5, 1.0)
ACTIVATIONS = {"ReLU+TanH": "relu_tanh", "ReLU": "relu", "TanH": "tanh"}
#: tab:activations_comparison
PAPER = paper_table("activations")


def cells(scope: Scope) -> Cells:
    """One table: a row for each model and activation, a column for each data set."""
    return paper_cells(
        GROUP, PAPER, QUANTITIES, lambda row, column: _runs(row, column, scope), "step_size"
    )


def _runs(row: str, column: str, scope: Scope) -> Runs:
    """Return the runs with each step size; one of those of SAS-GNN is that of the main table."""
    model, _, activation = row.partition(", ")
    runs: Runs = ()
    for step_size in STEP_SIZES:
        options = {"activation": ACTIVATIONS[activation], "step_size": step_size}
        settings = {**scope.choose({}, QUICK), "options": options}
        config = with_recipe_of("sasgnn", column.lower(), model_name(model), settings)
        runs += repeat(config, "split", scope.numbers(SPLITS))
    return runs


def findings(table: Table) -> Findings:
    """ReLU∘tanh costs SAS-GNN nothing."""
    at = means(table)
    for column in QUANTITIES:
        yield check(
            f"{column}: SAS-GNN with ReLU+TanH is within one point of its best activation",
            [at[GROUP, f"SAS-GNN, {activation}", column] for activation in ACTIVATIONS],
            lambda relu_tanh, *others: relu_tanh >= max(others) - 1,
            f" ({listing(ACTIVATIONS)})",
        )


ABOUT = About(
    title="Activations",
    shows="tab:activations_comparison.",
    settings="SAS-GNN with its recipes, A-DGN and GRAFF with those of SAS-GNN (width, depth, "
    "dropout, training), over the ten published splits; the outer activation changes. The step "
    "size τ is that of {0.1, 0.5, 1} with the best mean validation score, for each model and "
    "activation, as in the paper; it stands in the cell.",
    quick="one split, 5 epochs, width 32",
    minutes=(27_000, 4),
    why="A-DGN and GRAFF have the settings of SAS-GNN; the paper's for them are not published.",
)
