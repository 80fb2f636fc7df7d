from __future__ import annotations

from dataclasses import replace

from eegnn.studies.experiment import Cell, CellResult, Scope, Score
from eegnn.studies.markdown import format_result, paper_tables, superseded_table
from eegnn.studies.quantities import AUROC, PARAMETERS
from tests.studies import tiny
from tests.studies.tiny import record


def test_a_cell_with_fewer_runs_than_asked_says_so_and_has_no_verdict() -> None:
    gcn, _ = tiny.cells(Scope())
    (_, grid, _) = paper_tables([CellResult(gcn, (record(0.1),))])
    assert "| GCN | -1.00 (1 of 2 runs)<br>*-1.00 ± 0.50*<br>incomplete |" in grid


def test_runs_that_diverged_are_counted() -> None:
    gcn, _ = tiny.cells(Scope())
    failed = ({"failed": "nan", **record(0.0, 1)},)
    assert format_result(CellResult(gcn, (record(0.1),), failed)) == "-1.00 (1 diverged)"
    assert format_result(CellResult(gcn, failures=failed)) == "1 diverged"
    assert format_result(CellResult(gcn)) == "–"


def known(group: str, row: str, column: str, value: float) -> CellResult:
    return CellResult(Cell(group, row, column, PARAMETERS, (), Score(5), known=value))


def test_narrow_tables_with_the_same_rows_are_joined_as_in_the_paper() -> None:
    (_, grid) = paper_tables([known(g, "x", c, 5) for g in "ab" for c in ("10", "20")])
    assert grid.splitlines()[0] == "|  | a, 10 | a, 20 | b, 10 | b, 20 |"
    assert "| x | 5<br>equal | 5<br>equal | 5<br>equal | 5<br>equal |" in grid
    wide = [known(g, "x", c, 6) for g in "ab" for c in ("10", "20", "30")]
    assert [part for part in paper_tables(wide) if part.startswith("**")] == ["**a**", "**b**"]
    other = [known("a", "x", "10", 6), known("b", "y", "10", 6)]
    assert "| x | 6<br>*5*<br>differs |" in paper_tables(other)[2]


def test_groups_without_a_number_of_ours_are_left_out_but_single_cells_are_not() -> None:
    cells = [Cell("a", row, "c", AUROC, (tiny.config(),), Score(90.0, 1.0)) for row in "xy"]
    there = [CellResult(cells[0], (record(0.9),)), CellResult(cells[1])]
    away = CellResult(replace(cells[0], group="b"))
    grid = next(part for part in paper_tables([*there, away]) if part.startswith("|"))
    assert "| y | –<br>*90.00 ± 1.00* |" in grid
    assert "**b**" not in paper_tables([*there, away])


def test_superseded_runs_come_with_what_differs_and_where_they_are() -> None:
    gcn, _ = tiny.cells(Scope())
    old = CellResult(gcn, (record(0.1), record(0.1, 1), record(0.01, 3)), superseded="lr 1 (now 2)")
    row = superseded_table([old, replace(old, cell=replace(gcn, column="5"))]).splitlines()[-1]
    ours = "-1.33 ± 0.58"
    assert row == (
        f"| line, GCN | lr 1 (now 2) | 3: {ours}<br>5: {ours} | 3: -1.00 ± 0.50<br>5: -1.00 ± 0.50 "
        "| 3: split 0–1, 3, seed 0 | `1111111` | `tiny.jsonl` 1–2, 4 |"
    )
