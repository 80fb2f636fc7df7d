"""Task adaptivity: the same graphs, two tasks, and where graphs leave."""

from __future__ import annotations

import operator

from eegnn.experiments.lrgb import recipe_runs
from eegnn.studies.experiment import About, Cell, Cells, Findings, Scope, Table
from eegnn.studies.figures import draw_exits
from eegnn.studies.findings import check
from eegnn.studies.quantities import MEAN_EXIT

GROUP = "Exits of EEGNN"
TASKS = ("Peptides-func", "Peptides-struct")


def cells(scope: Scope) -> Cells:
    """A row for each task."""
    return [
        Cell(GROUP, row, "mean exit layer", MEAN_EXIT, recipe_runs(row, "eegnn", {}, scope))
        for row in TASKS
    ]


def findings(table: Table) -> Findings:
    """One task needs more steps than the other, and neither many."""
    func, struct = (result.mean for result in table)
    shallow = "Peptides-func: graphs leave after two or three steps"
    yield check(shallow, [func], lambda steps: steps <= 3, " ({:.1f})")
    deeper = "Peptides-struct: graphs leave later than in Peptides-func"
    yield check(deeper, [struct, func], operator.gt, " ({:.1f} and {:.1f})")


ABOUT = About(
    title="Task adaptivity: exits on Peptides",
    shows="The exits of EEGNN on Peptides-func and Peptides-struct (fig:funcvsstruct), a figure "
    "with few numbers.",
    settings="The runs of EEGNN in lrgb: 10 layers, four seeds, test graphs. Exits are counted as "
    "steps taken.",
    quick="one epoch of width 8, one seed",
    minutes=(80_000, 4),
    draw=draw_exits,
    needs="a GPU, or a hundred cores",
)
