"""Task awareness: where AP-GCN and EEGNN let nodes leave when the task is a long way."""

from __future__ import annotations

from eegnn.experiments import echo
from eegnn.studies.configs import model_name, repeat, with_recipe
from eegnn.studies.experiment import About, Cells, Findings, Scope, Score, Table
from eegnn.studies.figures import draw_exits
from eegnn.studies.findings import check, means
from eegnn.studies.quantities import MAE, MEAN_EXIT, Quantity
from eegnn.studies.tables import row_cells

ERROR, EXIT = "MAE", "mean exit layer"
QUANTITIES: dict[str, Quantity] = {ERROR: MAE, EXIT: MEAN_EXIT}
#: The mean exits in the appendix on APGCN and EEGNN; the errors are those of tab:echo_results.
PAPER_EXITS = {("ecc", "AP-GCN"): Score(7.10, 0.74), ("ecc", "EEGNN"): Score(16.71, 6.76)}
TASKS = ("sssp", "ecc")


def cells(scope: Scope) -> Cells:
    """A table for each task: a row for each model, its error and where nodes leave."""
    # AP-GCN learns to halt in every fifth epoch: fewer than ten would show nothing.
    size, settings = scope.choose(("", {}), ("@0.01", {"epochs": 10}))
    for task in TASKS:
        for row in ("AP-GCN", "EEGNN"):
            config = with_recipe(f"echo-{task}{size}", model_name(row), settings)
            paper = {ERROR: echo.PAPER[row][task], EXIT: PAPER_EXITS.get((task, row))}
            runs = repeat(config, "seed", scope.numbers(echo.SEEDS))
            yield from row_cells(task, row, QUANTITIES, runs, paper)


def findings(table: Table) -> Findings:
    """EEGNN goes deeper where it must, and errs less."""
    at = means(table)
    for task in TASKS:
        yield check(
            f"{task}: the error of EEGNN is less than half of AP-GCN's",
            (at[task, "EEGNN", ERROR], at[task, "AP-GCN", ERROR]),
            lambda eegnn, apgcn: eegnn < 0.5 * apgcn,
            " (EEGNN {:.3g}, AP-GCN {:.3g})",
        )
        yield check(
            f"{task}: AP-GCN leaves earlier than EEGNN",
            (at[task, "AP-GCN", EXIT], at[task, "EEGNN", EXIT]),
            lambda apgcn, eegnn: apgcn < eegnn,
            " (AP-GCN {:.3g}, EEGNN {:.3g})",
        )


ABOUT = About(
    title="Task awareness: exits on ECHO",
    shows="The exits of AP-GCN and EEGNN on sssp and ecc (fig:box_plot_sssp_exit, "
    "fig:ecc_step_distributions) and their errors (tab:echo_results).",
    settings="The runs of the two models in echo, on all graphs: the recipe of EEGNN is ours, that "
    "of AP-GCN the paper's (tab:apgcn_hyperparams) with fewer epochs. Runs differ in their seed. "
    "Exits are counted as steps taken, in the test graphs.",
    quick="144 graphs, 10 epochs, one seed",
    minutes=(600, 3),
    draw=draw_exits,
)
