from __future__ import annotations

import pytest

from eegnn.experiments.exits_echo import ERROR, EXIT, cells, findings
from eegnn.studies.experiment import CellResult, Scope

Numbers = dict[tuple[str, str], tuple[float, float]]
#: Error and mean exit, as in the paper for ecc.
GOOD: Numbers = {
    ("sssp", "AP-GCN"): (6.7, 5.0),
    ("sssp", "EEGNN"): (0.1, 12.0),
    ("ecc", "AP-GCN"): (11.0, 7.0),
    ("ecc", "EEGNN"): (5.0, 17.0),
}


def table(numbers: Numbers) -> list[CellResult]:
    found = []
    for cell in cells(Scope()):
        error, depth = numbers[cell.group, cell.row]
        found.append(CellResult(cell, ({"test": error, "exits": {"mean": depth}},) * 4))
    return found


def test_the_papers_numbers_stand_beside_ours() -> None:
    found = {(m.cell.group, m.cell.row, m.cell.column): m for m in table(GOOD)}
    assert found["ecc", "EEGNN", ERROR].verdict == "within one s.d."
    assert found["ecc", "AP-GCN", EXIT].verdict == "within one s.d."
    assert found["sssp", "AP-GCN", EXIT].verdict == ""


@pytest.mark.parametrize(
    ("change", "holds"),
    [
        ({}, [True, True, True, True]),
        ({("sssp", "EEGNN"): (3.4, 12.0)}, [False, True, True, True]),
        ({("ecc", "EEGNN"): (5.0, 6.9)}, [True, True, True, False]),
    ],
)
def test_what_the_paper_says_is_checked(change: Numbers, holds: list[bool]) -> None:
    assert [finding.holds for finding in findings(table({**GOOD, **change}))] == holds


def test_error_and_exit_are_read_from_the_same_runs() -> None:
    configs = {cell.column: cell.configs for cell in cells(Scope()) if cell.group == "ecc"}
    assert configs[ERROR] == configs[EXIT]
    assert [config.seed for config in configs[ERROR]] == [0, 1, 2, 3]
