from __future__ import annotations

import pytest

from eegnn.experiments.parameters import GROUPS, PAPER, cells, findings
from eegnn.studies.experiment import CellResult, Scope


def table() -> list[CellResult]:
    return [CellResult(cell) for cell in cells(Scope())]


def test_all_counts_but_polynormers_are_the_papers() -> None:
    verdicts = {(m.cell.group, m.cell.row): m.verdict for m in table()}
    assert len(verdicts) == len(GROUPS) * len(PAPER[10]) == 25
    assert {row for (_, row), verdict in verdicts.items() if verdict == "equal"} == {
        "GCN", "Co-GNN", "SAS-GNN", "EEGNN",
    }  # fmt: skip
    assert {verdict for (_, row), verdict in verdicts.items() if row == "Polynormer"} == {"differs"}


def test_the_differences_are_explained_to_the_last_parameter() -> None:
    assert [finding.holds for finding in findings(table())] == [True, True, True]


@pytest.mark.parametrize(
    ("group", "row", "layers", "count"),
    [
        # by hand: encoder (m + 1) m', layers L (m'² + m'), decoder m' C
        ("Minesweeper", "GCN", 10, 8 * 32 + 10 * (32 * 32 + 32) + 32 * 2),
        # Ω m'², W m' (m' + 2), encoder and decoder
        ("Roman-empire", "SAS-GNN", 20, 301 * 32 + 32 * 32 + 32 * 34 + 32 * 18),
    ],
)
def test_a_count_is_that_of_the_formula(group: str, row: str, layers: int, count: int) -> None:
    place = (group, row, f"{layers} layers")
    (found,) = (c for c in cells(Scope()) if (c.group, c.row, c.column) == place)
    assert found.known == count
