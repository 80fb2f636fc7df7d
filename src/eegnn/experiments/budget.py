"""The budget L: does early exit stay as good when it may go deeper?"""

from __future__ import annotations

from functools import partial
from itertools import product

from eegnn.studies.configs import model_name, repeat, with_recipe_of
from eegnn.studies.experiment import About, Cell, Cells, Findings, Scope, Table
from eegnn.studies.figures import draw_lines
from eegnn.studies.findings import check, listing, statistic
from eegnn.studies.quantities import AUROC, MEAN_EXIT, Quantity
from eegnn.studies.tables import by_group, by_row

DATASETS = ("Tolokers", "Questions")
QUANTITIES: dict[str, Quantity] = {"AUROC": AUROC, "mean exit": MEAN_EXIT}
ROWS = ("EEGNN", "EE+GCN", "EE+SAGE", "EE+GAT", "EE+GIN")


def cells(scope: Scope) -> Cells:
    """A table for each data set and quantity: a row for each model, a column for each budget."""
    budgets = scope.choose((5, 10, 15, 20), (5, 10))
    for dataset, name, row, budget in product(DATASETS, QUANTITIES, ROWS, budgets):
        settings = {"num_layers": budget + 1, **scope.choose({}, {"epochs": 3})}  # L counts from 0
        config = with_recipe_of("eegnn", dataset.lower(), model_name(row), settings)
        runs = repeat(config, "split", scope.numbers(3))
        yield Cell(f"{dataset}, {name}", row, str(budget), QUANTITIES[name], runs)


def findings(table: Table) -> Findings:
    """EEGNN varies less with the budget than the others."""
    for dataset in DATASETS:
        rows = by_row(by_group(table)[f"{dataset}, AUROC"]).values()
        scores = [[result.mean for result in row] for row in rows]
        yield check(
            f"{dataset}: EEGNN varies least with the budget",
            [statistic(lambda row: max(row) - min(row), row) for row in scores],
            lambda eegnn, *others: eegnn <= min(others),
            f" (largest − smallest score: {listing(ROWS)})",
        )


ABOUT = About(
    title="Instability under the budget",
    shows="The figures of scores and exits against the budget L (fig:early-exit_unstable, "
    "fig:questions_exit_distribution_parameters, "
    "fig:tolokers_exit_distribution_parameters_performance), which come without numbers.",
    settings="All models with the recipe of EEGNN and another budget, one set of weights for all "
    "layers, three splits. A budget L is L + 1 steps, since the paper counts from 0.",
    quick="one split, 3 epochs, two budgets",
    minutes=(3_500, 1),
    draw=partial(draw_lines, x_label="budget L"),
)
