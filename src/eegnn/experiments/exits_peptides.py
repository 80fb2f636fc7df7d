"""Task adaptivity: the same graphs, two tasks, and where graphs leave."""

from __future__ import annotations

from collections.abc import Sequence

from eegnn.experiments.lrgb import runs
from eegnn.studies.figures import draw_exits
from eegnn.studies.study import MEAN_EXIT, Cell, Experiment, Finding, Measured, Plan
from eegnn.studies.tables import means

GROUP = "Exits of EEGNN"
TASKS = ("Peptides-func", "Peptides-struct")


def cells(plan: Plan) -> list[Cell]:
    """A row for each task."""
    return [
        Cell(GROUP, row, "mean exit layer", MEAN_EXIT, tuple(runs(row, "eegnn", {}, plan)))
        for row in TASKS
    ]


def findings(table: Sequence[Measured]) -> list[Finding]:
    """That one task needs more steps than the other, and neither many."""
    at = {row: m.mean for (_, row, _), m in means(table).items()}
    func, struct = (at.get(row) for row in TASKS)
    shallow, deeper = (
        "Peptides-func: graphs leave after two or three steps",
        ("Peptides-struct: graphs leave later than in Peptides-func"),
    )
    return [
        Finding(shallow, None) if func is None else Finding(f"{shallow} ({func:.1f})", func <= 3),
        Finding(deeper, None)
        if func is None or struct is None
        else Finding(f"{deeper} ({struct:.1f} and {func:.1f})", struct > func),
    ]


EXPERIMENT = Experiment(
    name="exits-peptides",
    title="Task adaptivity: exits on Peptides",
    shows="The exits of EEGNN on Peptides-func and Peptides-struct (fig:funcvsstruct), a figure "
    "with few numbers.",
    settings="The runs of EEGNN in lrgb: 10 layers, four seeds, test graphs. Exits are counted as "
    "steps taken.",
    quick="one epoch of width 8, one seed",
    minutes=(80_000, 4),
    cells=cells,
    findings=findings,
    draw=draw_exits,
    needs="a GPU, or a hundred cores",
)
