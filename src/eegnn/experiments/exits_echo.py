"""Task awareness: where AP-GCN and EEGNN let nodes leave when the task is a long way."""

from __future__ import annotations

from collections.abc import Sequence

from eegnn.studies.figures import draw_exits
from eegnn.studies.study import (
    MAE,
    MEAN_EXIT,
    Cell,
    Experiment,
    Finding,
    Measured,
    Plan,
    Quantity,
    Score,
)
from eegnn.train.start import configure

TASKS = {"sssp": "echo-sssp", "ecc": "echo-ecc"}
MODELS = {"AP-GCN": "apgcn", "EEGNN": "eegnn"}
#: Weight initialisations in the paper.
SEEDS = 4
ERROR, EXIT = "MAE", "mean exit layer"
#: tab:echo_results; the mean exits on ecc are those of the appendix on APGCN and EEGNN.
PAPER = {
    ("sssp", "AP-GCN", ERROR): Score(6.729, 0.018),
    ("sssp", "EEGNN", ERROR): Score(0.065, 0.074),
    ("ecc", "AP-GCN", ERROR): Score(11.080, 0.099),
    ("ecc", "EEGNN", ERROR): Score(5.048, 0.237),
    ("ecc", "AP-GCN", EXIT): Score(7.10, 0.74),
    ("ecc", "EEGNN", EXIT): Score(16.71, 6.76),
}


def cells(plan: Plan) -> list[Cell]:
    """A table for each task: a row for each model, its error and where nodes leave."""
    # AP-GCN learns to halt in every fifth epoch: fewer than ten would show nothing.
    size, settings = ("@0.01", {"epochs": 10}) if plan.quick else ("", {})
    columns: dict[str, Quantity] = {ERROR: MAE, EXIT: MEAN_EXIT}
    return [
        Cell(
            task,
            row,
            column,
            quantity,
            tuple(
                configure(dataset + size, model, None, {**settings, "seed": seed})
                for seed in plan.over(SEEDS, 1)
            ),
            PAPER.get((task, row, column)),
        )
        for task, dataset in TASKS.items()
        for row, model in MODELS.items()
        for column, quantity in columns.items()
    ]


def findings(table: Sequence[Measured]) -> list[Finding]:
    """That EEGNN goes deeper where it must, and errs less."""
    at = {(m.cell.group, m.cell.row, m.cell.column): m.mean for m in table}
    found = []
    for task in TASKS:
        for column, factor, claim in (
            (ERROR, 0.5, "the error of EEGNN is less than half of AP-GCN's"),
            (EXIT, 1.0, "AP-GCN leaves earlier than EEGNN"),
        ):
            low, high = ("EEGNN", "AP-GCN") if column == ERROR else ("AP-GCN", "EEGNN")
            less, more = at[task, low, column], at[task, high, column]
            if less is None or more is None:
                found.append(Finding(f"{task}: {claim}", None))
            else:
                text = f"{task}: {claim} ({low} {less:.3g}, {high} {more:.3g})"
                found.append(Finding(text, less < factor * more))
    return found


EXPERIMENT = Experiment(
    name="exits-echo",
    title="Task awareness: exits on ECHO",
    shows="The exits of AP-GCN and EEGNN on sssp and ecc (fig:box_plot_sssp_exit, "
    "fig:ecc_step_distributions) and their errors (tab:echo_results).",
    settings="The runs of the two models in echo, on all graphs: the recipe of EEGNN is ours, that "
    "of AP-GCN the paper's (tab:apgcn_hyperparams) with fewer epochs. Runs differ in their seed. "
    "Exits are counted as steps taken, in the test graphs.",
    quick="144 graphs, 10 epochs, one seed",
    minutes=(600, 3),
    cells=cells,
    findings=findings,
    draw=lambda table, path: draw_exits([m for m in table if m.cell.column == EXIT], path),
)
