from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from eegnn.studies.collection import Collection, ExperimentResults, collect
from eegnn.studies.experiment import Cell, CellResult, Experiment, Finding, Score
from eegnn.studies.quantities import AUROC
from eegnn.studies.results_page import count, distinct, results_page
from eegnn.train.config import Config
from eegnn.train.results import append_result
from eegnn.train.run import RunFolder
from tests.studies import tiny
from tests.train.records import SUMMARY

TINY = replace(tiny.EXPERIMENT, why="Two epochs are few.")


def run(folder: Path, config: Config, test: float) -> RunFolder:
    """A finished run that was never trained."""
    made = RunFolder(folder)
    made.start(config, "classification")
    made.write_summary({**SUMMARY, "dataset": config.dataset, "test": test})
    return made


def page(folder: Path, tests: Sequence[float], experiment: Experiment = TINY) -> str:
    """The page of the tiny experiment, with results of GCN in a folder."""
    for split, test in enumerate(tests):
        made = run(folder / f"run{split}", tiny.config("gcn", split), test)
        append_result(folder / "some.jsonl", made, "eegnn train")
    return results_page(collect([experiment], folder), "../results")


def test_the_page_counts_and_shows_what_there_is(tmp_path: Path) -> None:
    text = page(tmp_path, [0.1, 0.01])
    assert (
        "- **2 numbers**: 1 have all their runs or need none, 0 some of their runs, 1 none" in text
    )
    assert "- **1 complete numbers stand beside one of the paper**: 1 of trained models" in text
    assert "1 hold, 0 do not, 0 are open" in text
    assert "Statements that hold:\n\n- something was run (`tiny`)." in text
    assert "| [tiny](#tiny) | A tiny study | 1 | 0 | 1 | 1 within one s.d. | 3+ |" in text
    assert "![A tiny study](../results/tiny.png)" in text
    assert "within: -1.0 s.d." in text
    assert "explanation" not in text


def test_what_is_worse_leads_and_is_explained(tmp_path: Path) -> None:
    text = page(tmp_path, [10.0, 10.0])
    found = "`tiny`, line, GCN, 3: 1.00 ± 0.00, the paper -1.00 ± 0.50 (worse: +4.0 s.d."
    assert found in text.partition("## The paper's tables")[0]
    assert "The best explanation of what is worse: Two epochs are few." in text


def test_what_was_not_run_is_listed_at_the_end_with_command_and_cost(tmp_path: Path) -> None:
    end = page(tmp_path, [0.1]).partition("## Not run")[2].partition("What is here, but")
    assert "reproduce" not in end[0]
    assert "| `eegnn reproduce tiny` | 2 | 3 | 1.5+ |" in end[2]


def test_what_needs_hardware_or_data_that_is_not_here_says_which(tmp_path: Path) -> None:
    def cells(scope: object) -> list[Cell]:
        wanted = [tiny.config(), Config(dataset="questions")]
        return [Cell("g", str(n), "c", AUROC, (config,)) for n, config in enumerate(wanted)]

    end = page(tmp_path, [], replace(TINY, cells=cells)).partition("## Not run")[2]
    data, _, time = end.partition("What is here, but")
    command = "eegnn reproduce tiny --only"
    assert f"| `{command} questions` | 1 | 1 | the data of questions | ~0.05 |" in data
    assert f"| `{command} transfer-line-3` | 1 | 1 | ~0.05 |" in time
    end = page(tmp_path, [], replace(TINY, needs="patience")).partition("## Not run")[2]
    assert "| `eegnn reproduce tiny` | 2 | 4 | patience | ~0.1 |" in end


def test_superseded_runs_stand_with_their_experiment_or_with_others(tmp_path: Path) -> None:
    for name in ("tiny", "else"):
        made = run(tmp_path / name, tiny.config(lr=0.5), 0.1)
        append_result(tmp_path / f"{name}.jsonl", made, "eegnn train")
    text = page(tmp_path, [])
    assert "- **2 runs are superseded**" in text
    own, _, others = text.partition("## Other runs")
    assert "| line, GCN, 3 | lr 0.5 (now 0.01) | -1.00 |" in own
    assert "| tiny: line, GCN, 3 | lr 0.5 (now 0.01) | -1.00 |" in others
    assert "`else.jsonl` 1 |" in others


def test_statements_are_gathered_by_where_they_hold() -> None:
    def findings(table: object) -> list[Finding]:
        texts = ("a: it is so", "b: it is so", "c: it is so", "d: it is so", "note: it counts")
        return [Finding(t, h) for t, h in zip(texts, (True, False, True, None, True), strict=True)]

    known = [CellResult(Cell(group, "x", "y", AUROC, (), known=1.0)) for group in "abcd"]
    results = ExperimentResults(replace(TINY, findings=findings), known)
    text = results_page(Collection([results], [], set()), "")
    assert "do not hold:\n\n- it is so: b (`tiny`)." in text
    assert "that hold:\n\n- it is so: a; c (`tiny`).\n- note: it counts (`tiny`)." in text
    assert "Open: `tiny` 1." in text


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
    assert (found["complete"], found["equal"]) == (4, 2)
