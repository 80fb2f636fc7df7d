from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import pytest

from eegnn.studies.collection import ExperimentResults
from eegnn.studies.experiment import Cell, CellResult, Finding, Scope, Score
from eegnn.studies.pages import (
    FIELDS,
    describe_finding,
    experiment_page,
    table_csv,
    trace,
    write_pages,
)
from eegnn.studies.quantities import LOG10_MSE
from tests.studies import tiny


def table(quick: bool = False) -> list[CellResult]:
    """GCN with MSE of 0.1 and 0.01; A-DGN not run."""
    gcn, adgn = tiny.cells(Scope(quick, (0, 1)))
    return [
        CellResult(gcn, (tiny.record(0.1), tiny.record(0.01, 1, "2222222bbbbb"))),
        CellResult(adgn),
    ]


def results(quick: bool = False) -> ExperimentResults:
    return ExperimentResults(tiny.EXPERIMENT, table(quick))


def test_the_page_of_an_experiment_has_ours_above_the_papers_and_says_from_which_runs() -> None:
    text = experiment_page(results(), Scope())
    # (−1.5 − (−1)) / 0.5, and 0.5 / √(0.5² + 0.5² / 2): 0.71 / √2 is our standard error
    assert (
        "| GCN | -1.50 ± 0.71<sup>1,2</sup><br>*-1.00 ± 0.50*<br>within: -1.0 s.d., -0.8 s.e. |"
        in text
    )
    assert "<sup>1</sup> `1111111`, <sup>2</sup> `2222222`" in text
    assert "ADGN" not in text  # neither run nor in the paper
    assert "- holds: something was run." in text
    assert '`eegnn reproduce tiny --show "line, GCN, 3"`' in text
    assert "quick" not in text


def test_quoted_numbers_stand_in_the_table_and_are_counted_nowhere() -> None:
    cell = Cell("line", "GRIT", "3", LOG10_MSE, paper=Score(-2.0, 0.25))
    found = replace(results(), experiment=replace(tiny.EXPERIMENT, quoted=(cell,)))
    assert "| GRIT | *-2.00 ± 0.25*, quoted |" in experiment_page(found, Scope())
    assert "GRIT" not in table_csv(found.table)


def test_a_quick_version_says_so() -> None:
    text = experiment_page(results(quick=True), Scope(quick=True))
    assert text.startswith("# A tiny study (quick version)\n")
    assert "**This is the quick version**: one epoch." in text
    assert "eegnn reproduce tiny --quick" in text


def test_programs_get_every_digit_the_errors_and_the_commits() -> None:
    old = CellResult(table()[0].cell, (tiny.record(0.001),), superseded="lr 1 (now 2)")
    lines = list(csv.DictReader(table_csv([*table(), old]).splitlines()))
    assert tuple(lines[0]) == FIELDS
    assert [line["row"] for line in lines] == ["GCN", "ADGN", "GCN"]
    assert float(lines[0]["mean"]) == -1.5
    assert float(lines[0]["se"]) == pytest.approx(0.5)
    assert (lines[0]["n"], lines[0]["asked"], lines[0]["failed"]) == ("2", "2", "0")
    assert float(lines[0]["difference"]) == -1.0
    assert float(lines[0]["difference_se"]) == pytest.approx(-0.5 / 0.375**0.5)
    assert lines[0]["commits"] == "1111111:1 2222222:1"
    assert (lines[1]["mean"], lines[1]["verdict"]) == ("", "not run")
    assert (lines[2]["verdict"], lines[2]["superseded"]) == ("superseded", "lr 1 (now 2)")


def test_a_number_is_traced_to_its_runs() -> None:
    found = trace(table()[0])
    assert (found["row"], found["mean"]) == ("GCN", -1.5)
    assert [r["value"] for r in found["runs"]] == [-1.0, -2.0]
    assert found["runs"][1] == {
        "value": -2.0,
        "val": 0.5,
        "split": 1,
        "seed": 0,
        "commit": "2222222bbbbb",
        "source": "tiny.jsonl:2",
        "command": "eegnn train x",
    }


@pytest.mark.parametrize(
    ("holds", "so_far", "said"),
    [
        (True, True, "holds: it is so"),
        (False, False, "**does not hold**: it is so"),
        (None, None, "open: it is so"),
        (None, True, "open, with runs missing; so far it holds: it is so"),
        (None, False, "open, with runs missing; so far it does not: it is so"),
    ],
)
def test_a_statement_says_whether_it_holds(
    holds: bool | None, so_far: bool | None, said: str
) -> None:
    assert describe_finding(Finding("it is so", holds, so_far)) == said


def test_files_are_named_after_the_experiment_and_marked_if_quick(tmp_path: Path) -> None:
    for scope, name in ((Scope(), "tiny"), (Scope(quick=True), "tiny-quick")):
        files = write_pages(results(scope.quick), scope, tmp_path)
        assert files == [tmp_path / f"{name}{ending}" for ending in (".md", ".csv", ".png")]
        assert all(path.stat().st_size > 0 for path in files)
        assert f"({name}.png)" in files[0].read_text()


def test_a_table_has_no_figure(tmp_path: Path) -> None:
    plain = replace(results(), experiment=replace(tiny.EXPERIMENT, draw=None))
    files = write_pages(plain, Scope(), tmp_path)
    assert [path.suffix for path in files] == [".md", ".csv"]
    assert ".png" not in files[0].read_text()
