from __future__ import annotations

from typing import Any

import pytest

from eegnn.studies.experiment import Cell, Score
from eegnn.studies.markdown import format_result
from eegnn.studies.quantities import ACCURACY, MAE, Quantity, RunRecord
from eegnn.studies.tuning import cell_result
from eegnn.train.config import Config

STEP_SIZES = (0.1, 0.5)


def tuned_cell(quantity: Quantity = ACCURACY) -> Cell:
    """Two splits with each of two step sizes."""
    configs = tuple(
        Config(dataset="tiny", model="sasgnn", split=split, options={"step_size": step_size})
        for step_size in STEP_SIZES
        for split in (0, 1)
    )
    return Cell("", "SAS-GNN", "tiny", quantity, configs, Score(50, 1), tuned="step_size")


def record(cell: Cell, number: int, **fields: Any) -> RunRecord:
    config = cell.configs[number].model_dump()
    if config["options"] == {"step_size": 0.5}:
        config["options"] = {}  # its default, which a record need not have
    return {"config": config, "source": f"tiny.jsonl:{number}", **fields}


def records(cell: Cell) -> list[RunRecord]:
    """The larger step has the better validation and the worse test scores."""
    scores = [(0.7, 0.9), (0.6, 0.8), (0.9, 0.5), (0.5, 0.3)]
    return [record(cell, k, val=val, test=test) for k, (val, test) in enumerate(scores)]


def test_the_runs_with_the_best_mean_validation_score_count() -> None:
    cell = tuned_cell()
    found = cell_result(cell, records(cell))
    assert found.values == [50, 30]
    assert found.complete
    assert found.missing == []
    assert format_result(found) == "40.0 ± 14.1 (step_size 0.5)"


def test_less_is_better_where_errors_are_measured() -> None:
    cell = tuned_cell(MAE)
    assert cell_result(cell, records(cell)).values == [0.9, 0.8]


def test_the_runs_that_were_not_chosen_can_be_traced() -> None:
    cell = tuned_cell()
    assert sorted(cell_result(cell, records(cell)).sources) == [f"tiny.jsonl:{k}" for k in range(4)]


@pytest.mark.parametrize("absent", range(4))
def test_a_missing_run_is_missing_whichever_value_is_best(absent: int) -> None:
    cell = tuned_cell()
    there = [r for k, r in enumerate(records(cell)) if k != absent]
    found = cell_result(cell, there)
    assert not found.complete
    assert found.verdict == "incomplete"
    assert found.missing == [cell.configs[absent]]
    assert "3 of 4 runs" in format_result(found)


def test_a_value_with_a_run_that_diverged_is_not_chosen() -> None:
    cell = tuned_cell()
    failed = record(cell, 3, failed="the loss is nan")
    found = cell_result(cell, [*records(cell)[:3], failed])
    assert found.values == [90, 80]
    assert found.complete


def test_the_mean_is_over_splits() -> None:
    assert tuned_cell().num_runs == 2
