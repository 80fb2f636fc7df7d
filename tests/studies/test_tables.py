from __future__ import annotations

from eegnn.studies.configs import Runs
from eegnn.studies.experiment import Score
from eegnn.studies.quantities import AUROC, MEAN_EXIT
from eegnn.studies.tables import PaperTable, paper_cells, quoted_cells, row_cells
from eegnn.train.config import Config

PAPER: PaperTable = {"x": {"a": Score(1.0, 0.1)}, "y": {"b": Score(2.0, 0.2)}}


def test_what_we_have_no_settings_for_gets_no_cell() -> None:
    def runs(row: str, column: str) -> Runs:
        return (Config(dataset="minesweeper"),) if row == "x" else ()

    (cell,) = paper_cells("g", PAPER, {"a": AUROC, "b": AUROC}, runs)
    assert (cell.group, cell.row, cell.column, cell.paper) == ("g", "x", "a", Score(1.0, 0.1))


def test_rows_that_are_quoted_have_cells_without_runs() -> None:
    cells = quoted_cells("g", PAPER, {"a": AUROC, "b": MEAN_EXIT})
    assert [(c.row, c.column, c.quantity, c.paper, c.configs) for c in cells] == [
        ("x", "a", AUROC, Score(1.0, 0.1), ()),
        ("y", "b", MEAN_EXIT, Score(2.0, 0.2), ()),
    ]


def test_columns_of_a_row_read_the_same_runs() -> None:
    runs = (Config(dataset="minesweeper"),)
    score, exits = row_cells("g", "x", {"a": AUROC, "b": MEAN_EXIT}, runs, {"a": Score(1.0)})
    assert (score.column, score.quantity, score.paper) == ("a", AUROC, Score(1.0))
    assert (exits.column, exits.quantity, exits.paper) == ("b", MEAN_EXIT, None)
    assert score.configs == exits.configs == runs
