from __future__ import annotations

import numpy as np
import pytest

from eegnn.studies.experiment import Cell, CellResult, Scope, Score
from eegnn.studies.pages import experiment_markdown
from eegnn.studies.quantities import ACCURACY, MAE, PARAMETERS, Quantity
from tests.studies import tiny


def measured(
    quantity: Quantity, tests: list[float], paper: Score | None, known: float | None = None
) -> CellResult:
    cell = Cell("group", "row", "column", quantity, paper=paper, known=known)
    return CellResult(cell, tuple({"test": value} for value in tests))


def test_a_cell_has_the_mean_and_the_spread_of_its_runs() -> None:
    tests = [0.8, 0.9, 0.7]
    found = measured(ACCURACY, tests, None)
    assert found.mean == pytest.approx(100 * np.mean(tests))
    assert found.sd == pytest.approx(100 * np.std(tests, ddof=1))
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
    assert f"Written by `{some.command('tiny')}`." in experiment_markdown(tiny.EXPERIMENT, some, [])


def test_a_run_that_several_cells_need_is_done_once() -> None:
    configs = tiny.EXPERIMENT.configs(Scope())
    assert len(configs) == 4
    assert configs[0] == tiny.config("gcn", 0)
