from __future__ import annotations

import csv
from pathlib import Path

from eegnn.studies.experiment import CellResult, Scope
from eegnn.studies.pages import FIELDS, experiment_markdown, format_result, table_csv, write_pages
from tests.studies import tiny


def table(quick: bool = False) -> list[CellResult]:
    """GCN with MSE of 0.1 and 0.01, one run diverged; A-DGN not run."""
    gcn, adgn = tiny.cells(Scope(quick))
    return [CellResult(gcn, ({"test": 0.1}, {"test": 0.01}), failed=1), CellResult(adgn)]


def test_our_numbers_stand_beside_the_papers() -> None:
    text = experiment_markdown(tiny.EXPERIMENT, Scope(), table())
    assert "| GCN | -1.50 ± 0.71 (1 diverged) |" in text
    assert "| ADGN | not run |" in text
    # (−1.5 − (−1)) / 0.5
    assert "| line | GCN | 3 | -1.50 ± 0.71 (1 diverged) | 2 | -1.00 ± 0.50 | -1.0 |" in text
    assert "- holds: something was run." in text
    assert "quick" not in text


def test_a_quick_version_says_so() -> None:
    text = experiment_markdown(tiny.EXPERIMENT, Scope(quick=True), table(quick=True))
    assert text.startswith("# A tiny study (quick version)\n")
    assert "**This is the quick version**: one epoch." in text
    assert "eegnn reproduce tiny --quick" in text


def test_programs_get_every_digit() -> None:
    lines = list(csv.DictReader(table_csv(table()).splitlines()))
    assert tuple(lines[0]) == FIELDS
    assert [line["row"] for line in lines] == ["GCN", "ADGN"]
    assert float(lines[0]["mean"]) == -1.5
    assert (lines[0]["n"], lines[0]["failed"]) == ("2", "1")
    assert float(lines[0]["difference"]) == -1.0
    assert (lines[1]["mean"], lines[1]["verdict"]) == ("", "not run")


def test_a_cell_with_nothing_but_failures_says_that() -> None:
    gcn, _ = tiny.cells(Scope())
    assert format_result(CellResult(gcn, failed=2)) == "2 diverged"


def test_files_are_named_after_the_experiment_and_marked_if_quick(tmp_path: Path) -> None:
    for scope, name in ((Scope(), "tiny"), (Scope(quick=True), "tiny-quick")):
        files = write_pages(tiny.EXPERIMENT, scope, table(scope.quick), tmp_path)
        assert files == [tmp_path / f"{name}{ending}" for ending in (".md", ".csv", ".png")]
        assert all(path.stat().st_size > 0 for path in files)
        assert f"({name}.png)" in files[0].read_text()
