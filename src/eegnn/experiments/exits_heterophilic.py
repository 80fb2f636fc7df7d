"""Where nodes leave on heterophilic graphs: the first, the median and the last exit."""

from __future__ import annotations

from eegnn.experiments.heterophilic import QUANTITIES as DATASETS
from eegnn.experiments.heterophilic import recipe_runs
from eegnn.studies.experiment import About, Cells, Scope, Score
from eegnn.studies.figures import draw_exits
from eegnn.studies.quantities import Quantity
from eegnn.studies.tables import row_cells

#: tab:node_distributions: the first, the median and the last exit.
PAPER: dict[str, tuple[Score, Score, Score]] = {
    "Amazon-ratings": (Score(5.1, 2.64), Score(13.8, 1.39), Score(21.0, 0.0)),
    "Minesweeper": (Score(11.4, 10.13), Score(15.6, 8.69), Score(15.7, 8.53)),
    "Roman-empire": (Score(1.7, 0.48), Score(3.3, 0.48), Score(10.2, 4.84)),
    "Tolokers": (Score(1.7, 0.82), Score(8.3, 2.00), Score(21.0, 0.0)),
    "Questions": (Score(1.0, 0.0), Score(7.0, 0.66), Score(18.8, 2.78)),
}


def _exit(key: str) -> Quantity:
    return Quantity(f"{key} of the exit layers", lambda run: run["exits"][key], "equal", 1)


QUANTITIES = {"Min.": _exit("min"), "Median": _exit("median"), "Max.": _exit("max")}


def cells(scope: Scope) -> Cells:
    """One table: a row for each data set."""
    for row in DATASETS:
        paper = dict(zip(QUANTITIES, PAPER[row], strict=True))
        runs = recipe_runs(row, "eegnn", {}, scope)
        yield from row_cells("Exits of EEGNN", row, QUANTITIES, runs, paper)


ABOUT = About(
    title="Exits on heterophilic graphs",
    shows="tab:node_distributions.",
    settings="The runs of EEGNN in heterophilic, L = 20, which is 21 steps: test nodes, averages "
    "over the splits. Exits are counted as steps taken, from 1 to 21, as in the paper.",
    quick="one split, 5 epochs, width 32",
    minutes=(3_500, 1),
    draw=draw_exits,
    why="Our heads start with a preference for continue; the paper does not say how its start. On "
    "Minesweeper the paper's exits vary from all at once to nobody.",
)
