from __future__ import annotations

import numpy as np
import pytest

from eegnn.studies.experiment import Cell, CellResult, Finding, Scope, Score
from eegnn.studies.quantities import ACCURACY, MAE, PARAMETERS, Quantity
from tests.studies import tiny


def measured(
    quantity: Quantity,
    tests: list[float],
    paper: Score | None,
    known: float | None = None,
    asked: int | None = None,
) -> CellResult:
    number = 0 if known is not None else len(tests) if asked is None else asked
    configs = tuple(tiny.config(split=split) for split in range(number))
    cell = Cell("group", "row", "column", quantity, configs, paper, known)
    runs = [{"test": t, "config": {"split": s, "seed": 0}} for s, t in enumerate(tests)]
    return CellResult(cell, tuple(runs))


def test_a_cell_has_the_mean_and_the_spread_of_its_runs() -> None:
    tests = [0.8, 0.9, 0.7]
    found = measured(ACCURACY, tests, None)
    assert found.mean == pytest.approx(100 * np.mean(tests))
    assert found.sd == pytest.approx(100 * np.std(tests, ddof=1))
    assert found.se == pytest.approx(100 * np.std(tests, ddof=1) / np.sqrt(3))
    assert measured(ACCURACY, [0.8], None).sd is None
    assert measured(ACCURACY, [], None).mean is None


@pytest.mark.parametrize(
    ("quantity", "tests", "paper", "difference", "verdict"),
    [
        (ACCURACY, [0.80, 0.82], Score(82.0, 2.0), -0.5, "within one s.d."),
        (ACCURACY, [0.80, 0.82], Score(76.0, 2.0), 2.5, "better"),
        (ACCURACY, [0.80, 0.82], Score(90.0, 2.0), -4.5, "worse"),
        (MAE, [0.1], Score(0.5, 0.1), -4.0, "better"),
        (MAE, [0.9], Score(0.5, 0.1), 4.0, "worse"),
        (MAE, [0.4, 0.6], Score(0.3), np.sqrt(2), "worse"),  # ours, for want of the paper's
        (MAE, [0.4], Score(0.7), None, "better"),
        (ACCURACY, [], Score(82.0, 2.0), None, "not run"),
        (ACCURACY, [0.8], None, None, ""),
    ],
)
def test_the_difference_is_in_standard_deviations(
    quantity: Quantity,
    tests: list[float],
    paper: Score | None,
    difference: float | None,
    verdict: str,
) -> None:
    found = measured(quantity, tests, paper)
    if difference is None:
        assert found.difference is None
    else:
        assert found.difference == pytest.approx(difference)
    assert found.verdict == verdict


def test_the_difference_is_also_in_standard_errors_of_both_means() -> None:
    found = measured(ACCURACY, [0.80, 0.82], Score(82.0, 2.0))
    # √2 / √2 = 1 is our standard error, 2 / √2 = √2 that of the paper with as many runs.
    assert found.difference_se == pytest.approx(-1 / np.sqrt(3))
    half = measured(ACCURACY, [0.80, 0.82], Score(82.0, 2.0), asked=4)
    assert half.difference_se == pytest.approx(-1 / np.sqrt(2))
    assert measured(ACCURACY, [0.80, 0.82], Score(82.0)).difference_se is None
    assert measured(ACCURACY, [0.80], Score(82.0, 2.0)).difference_se is None


def test_a_verdict_needs_all_runs() -> None:
    found = measured(ACCURACY, [0.80, 0.82], Score(82.0, 2.0), asked=3)
    assert (found.verdict, found.missing) == ("incomplete", [tiny.config(split=2)])
    failure = {"failed": "nan", "config": {"split": 2, "seed": 0}}
    done = CellResult(found.cell, found.runs, (failure,))
    assert (done.verdict, done.missing) == ("within one s.d.", [])
    assert CellResult(found.cell, found.runs, (failure,), "lr 1").verdict == "superseded"


def test_the_commits_of_runs_are_counted() -> None:
    commits = ("0123456789ab", "0123456789ab", "0123456789ab+", None)
    runs = tuple({"commit": commit} for commit in commits)
    found = CellResult(measured(ACCURACY, [], None).cell, runs).commits
    assert found == {"0123456": 2, "0123456+": 1, "unknown": 1}


def test_statements_are_decided_by_complete_cells_alone() -> None:
    run = {"test": 0.1, "config": {"split": 0, "seed": 0}}
    gcn, adgn = tiny.cells(Scope())
    table = [CellResult(gcn, (run,)), CellResult(adgn)]
    assert tiny.EXPERIMENT.judge(table) == [Finding("something was run", None, True)]
    table[0] = CellResult(gcn, (run, {**run, "config": {"split": 1, "seed": 0}}))
    assert tiny.EXPERIMENT.judge(table) == [Finding("something was run", True, True)]


@pytest.mark.parametrize(("known", "verdict"), [(2432.0, "equal"), (2433.0, "differs")])
def test_a_count_is_right_or_not(known: float, verdict: str) -> None:
    found = measured(PARAMETERS, [], Score(2432), known)
    assert (found.mean, found.verdict) == (known, verdict)


def test_a_scope_takes_all_splits_a_few_or_those_that_are_named() -> None:
    assert Scope().numbers(10, 2) == tuple(range(10))
    assert Scope(quick=True).numbers(10, 2) == (0, 1)
    assert Scope(quick=True, splits=(3, 5)).numbers(10, 2) == (3, 5)


def test_the_command_says_what_was_asked_for() -> None:
    assert Scope().command("tu") == "eegnn reproduce tu"
    some = Scope(quick=True, splits=(0, 3))
    assert some.command("tu") == "eegnn reproduce tu --quick --splits 0,3"


def test_a_run_that_several_cells_need_is_done_once() -> None:
    configs = tiny.EXPERIMENT.configs(Scope())
    assert len(configs) == 4
    assert configs[0] == tiny.config("gcn", 0)
