"""Which activation: tanh, ReLU, or the paper's ReLU∘tanh."""

from __future__ import annotations

from eegnn.experiments.heterophilic import QUANTITIES, QUICK, SPLITS
from eegnn.studies.configs import Runs, model_name, repeat, with_recipe_of
from eegnn.studies.experiment import About, Cells, Findings, Scope, Table
from eegnn.studies.findings import check, listing, means
from eegnn.studies.tables import PaperTable, paper_cells

GROUP = "Activations"
#: τ, chosen by validation for each model and activation.
STEP_SIZES = (0.1, 0.5, 1.0)
ACTIVATIONS = {"ReLU+TanH": "relu_tanh", "ReLU": "relu", "TanH": "tanh"}
#: tab:activations_comparison
PAPER: PaperTable = {
    "SAS-GNN, ReLU+TanH": [(51.47, 0.7), (93.29, 0.6), (83.46, 0.6), (85.80, 0.8), (79.60, 1.1)],
    "SAS-GNN, ReLU": [(51.39, 0.6), (93.38, 0.5), (83.59, 0.5), (85.72, 1.8), (79.13, 0.4)],
    "SAS-GNN, TanH": [(48.91, 0.8), (93.80, 0.5), (82.07, 0.5), (84.56, 0.7), (77.93, 1.3)],
    "A-DGN, ReLU+TanH": [(51.57, 1.3), (94.86, 0.4), (84.66, 0.6), (85.35, 1.7), (79.01, 1.1)],
    "A-DGN, ReLU": [(51.41, 0.4), (95.08, 0.5), (84.83, 0.6), (85.32, 1.0), (78.24, 1.8)],
    "A-DGN, TanH": [(49.14, 0.7), (94.81, 0.4), (82.53, 0.7), (84.90, 1.1), (76.51, 1.0)],
    "GRAFF, ReLU+TanH": [(50.77, 0.6), (92.59, 0.7), (78.59, 0.5), (85.29, 0.9), (79.04, 1.1)],
    "GRAFF, ReLU": [(51.41, 0.7), (93.23, 0.5), (78.98, 0.4), (85.67, 0.7), (76.27, 1.2)],
    "GRAFF, TanH": [(50.02, 1.5), (92.44, 0.7), (78.76, 0.8), (85.03, 1.8), (76.77, 1.5)],
}


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
