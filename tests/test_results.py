"""The results that are kept with the code: the page of them, and that nothing is left out."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from statistics import fmean

import pytest

from eegnn.experiments import registry
from eegnn.studies.collection import Collection, collect
from eegnn.studies.pages import table_csv, trace
from eegnn.studies.results_page import results_page

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"

pytestmark = pytest.mark.skipif(not RESULTS.is_dir(), reason="the source archive has no results")


@pytest.fixture(scope="module")
def found() -> Collection:
    return collect(map(registry.find, registry.EXPERIMENTS), RESULTS)


def test_the_page_is_what_the_results_give(found: Collection) -> None:
    written = (ROOT / "docs" / "RESULTS.md").read_text(encoding="utf-8")
    assert results_page(found, "../results") == written, (
        "write it again: eegnn reproduce --write-results docs/RESULTS.md"
    )


def test_so_are_the_tables_for_programs(found: Collection) -> None:
    for each in found.results:
        path = RESULTS / f"{each.experiment.name}.csv"
        if path.exists():
            assert path.read_text("utf-8") == table_csv([*each.table, *each.superseded]), path


def test_every_line_is_behind_a_number_or_superseded_once(found: Collection) -> None:
    files = [path for path in RESULTS.glob("*.jsonl") if not path.stem.endswith("-quick")]
    lines = {
        f"{path.name}:{number}"
        for path in files
        for number, _ in enumerate(path.read_text("utf-8").splitlines(), start=1)
    }
    behind = {source for each in found.results for r in each.table for source in r.sources}
    lists = [*(each.superseded for each in found.results), found.others]
    # A run with several quantities has a result for each, with the same lines.
    runs = [set(map(tuple, (result.sources for result in results))) for results in lists]
    superseded = Counter(source for some in runs for sources in some for source in sources)
    assert set(superseded.values()) <= {1}
    assert behind.isdisjoint(superseded)
    assert behind | superseded.keys() == lines


def test_the_page_names_every_superseded_line(found: Collection) -> None:
    page = (ROOT / "docs" / "RESULTS.md").read_text(encoding="utf-8")
    rows = [
        line.split(" | ")[-1].rstrip(" |")
        for line in page.splitlines()
        if line.startswith("|") and ".jsonl` " in line
    ]
    named = []
    for cell in rows:
        for part in cell.split("; "):
            file, _, numbers = part.replace("`", "").partition(" ")
            for span in numbers.split(", "):
                first, _, last = span.partition("–")
                named += [f"{file}:{n}" for n in range(int(first), int(last or first) + 1)]
    lists = [*(each.superseded for each in found.results), found.others]
    wanted = {source for results in lists for result in results for source in result.sources}
    assert len(named) == len(set(named))
    assert set(named) == wanted


def test_every_number_is_traced_to_lines_whose_values_it_is_the_mean_of(found: Collection) -> None:
    lines = {path.name: path.read_text("utf-8").splitlines() for path in RESULTS.glob("*.jsonl")}
    for each in found.results:
        for result in (*each.table, *each.superseded):
            if not result.runs:
                continue
            traced = trace(result)["runs"]
            assert result.mean == pytest.approx(fmean(run["value"] for run in traced))
            for run in traced:
                file, _, number = run["source"].partition(":")
                line = json.loads(lines[file][int(number) - 1])
                assert result.cell.quantity.read(line) == run["value"]
                assert (line["command"], line["commit"]) == (run["command"], run["commit"])
