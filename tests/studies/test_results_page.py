from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from eegnn.studies.experiment import Cell, CellResult, Scope, Score
from eegnn.studies.quantities import AUROC
from eegnn.studies.results_page import ExperimentResults, count, distinct, results_page
from eegnn.studies.store import ResultStore
from eegnn.train.config import Config
from eegnn.train.results import append_result
from eegnn.train.run import RunFolder
from tests.studies import tiny


def run(folder: Path, config: Config, test: float) -> RunFolder:
    """A finished run that was never trained."""
    made = RunFolder(folder)
    made.start(config, "classification")
    made.write_summary({"dataset": config.dataset, "test": test, "exits": {}})
    return made


def studied(folder: Path, tests: Sequence[float]) -> ExperimentResults:
    """The tiny experiment, with results of GCN in a folder."""
    for split, test in enumerate(tests):
        made = run(folder / f"run{split}", tiny.config("gcn", split), test)
        append_result(folder / "some.jsonl", made, "eegnn train")
    experiment = replace(tiny.EXPERIMENT, why="Two epochs are few.", needs="patience")
    table = ResultStore(folder, "tiny").results(experiment.cells(Scope()))
    return ExperimentResults(experiment, table, ["questions"])


def test_the_page_has_ours_the_papers_the_difference_and_the_verdict(tmp_path: Path) -> None:
    page = results_page([studied(tmp_path, [0.1, 0.01])])
    # log10 of 0.1 and 0.01; the paper's is −1 ± 0.5
    assert "| line | GCN | 3 | -1.50 ± 0.71 | 2 | -1.00 ± 0.50 | -1.0 | within one s.d. |" in page
    assert "| `tiny` | 2 | 1 | 1 | 0 | 1 | 0 | 0 | 0 | 1 |" in page
    assert "Not run, 1 cells: line, ADGN (3)." in page
    assert "- holds: something was run." in page
    assert "explanation" not in page


def test_what_is_worse_is_explained_and_a_cell_may_be_half_done(tmp_path: Path) -> None:
    page = results_page([studied(tmp_path, [10.0])])
    assert "| 1.00 | 1 of 2 | -1.00 ± 0.50 | +4.0 | worse |" in page
    assert "The best explanation of what is worse: Two epochs are few." in page


def test_what_was_not_run_comes_with_its_command_cost_and_needs(tmp_path: Path) -> None:
    page = results_page([studied(tmp_path, [])])
    assert (
        "Not run: `eegnn reproduce tiny`, 0.1 minutes of a core; needs patience; the data of "
        "questions was not here." in page
    )
    assert "| line |" not in page


def test_cells_that_tables_share_are_counted_once() -> None:
    config = (tiny.config(),)
    line = ({"test": 0.9},)

    def cell(group: str, column: str, paper: Score | None) -> CellResult:
        return CellResult(Cell(group, "x", column, AUROC, config, paper), line)

    first = ExperimentResults(
        tiny.EXPERIMENT, [cell("a", "1", Score(90.0, 0.61)), cell("a", "2", None)]
    )
    second = ExperimentResults(
        tiny.EXPERIMENT, [cell("b", "1", Score(90.0, 0.6)), cell("b", "2", None)]
    )
    known = ExperimentResults(
        tiny.EXPERIMENT, [CellResult(Cell("c", "x", "1", AUROC, (), Score(5.0), known=5.0))]
    )
    assert len(distinct([first, second, known])) == 4
    found = count(distinct([first, second, known]))
    assert (found["cells"], found["from runs"], found["beside the paper"]) == (4, 3, 2)
    assert found["equal"] == 2
