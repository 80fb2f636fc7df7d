from __future__ import annotations

import operator

import pytest

from eegnn.studies.experiment import Cell, CellResult, Finding
from eegnn.studies.findings import check, listing, means, statistic
from eegnn.studies.quantities import PARAMETERS


@pytest.mark.parametrize(
    ("values", "finding"),
    [
        ((1.0, 2.0), Finding("a < b (1.0 and 2.0)", True)),
        ((2.0, 1.0), Finding("a < b (2.0 and 1.0)", False)),
        ((None, 1.0), Finding("a < b", None)),
    ],
)
def test_a_claim_holds_or_not_and_stays_open_without_its_numbers(
    values: tuple[float | None, ...], finding: Finding
) -> None:
    assert check("a < b", values, operator.lt, " ({:.1f} and {:.1f})") == finding


def test_a_statistic_needs_all_numbers() -> None:
    assert statistic(max, (value for value in (1.0, 3.0, 2.0))) == 3.0
    assert statistic(max, (1.0, None)) is None


def test_a_listing_is_filled_by_the_numbers() -> None:
    assert listing(("GCN", "GAT")).format(1, 2) == "GCN 1.00, GAT 2.00"


def test_means_are_found_by_group_row_and_column() -> None:
    table = [
        CellResult(Cell("g", "x", "a", PARAMETERS, known=3.0)),
        CellResult(Cell("g", "x", "b", PARAMETERS)),
    ]
    assert means(table) == {("g", "x", "a"): 3.0, ("g", "x", "b"): None}
