"""What a finished run leaves behind."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from eegnn.data.problem import Problem
from eegnn.train.run import RunFolder
from tests.train.problems import graph_problem, new_run, node_problem, regression_problem, undecided

FIELDS = {
    "dataset",
    "model",
    "split",
    "seed",
    "epochs",
    "best_epoch",
    "metric",
    "val",
    "test",
    "params",
    "exits",
    "seconds",
}


def test_the_summary_has_the_fields_of_the_contract(tmp_path: Path) -> None:
    trainer = new_run(tmp_path, node_problem(), split=3, seed=7, epochs=4)
    summary = trainer.fit()
    assert summary.keys() >= FIELDS
    assert summary["exits"].keys() == {"min", "median", "mean", "max", "histogram"}
    said = {key: summary[key] for key in ("dataset", "model", "split", "seed", "epochs", "metric")}
    assert said == {
        "dataset": "by-hand",
        "model": "eegnn",
        "split": 3,
        "seed": 7,
        "epochs": 4,
        "metric": "roc_auc",
    }
    assert summary["params"] == sum(p.numel() for p in trainer.model.parameters())


def test_the_summary_on_disk_is_the_one_returned(tmp_path: Path) -> None:
    summary = new_run(tmp_path, graph_problem()).fit()
    assert json.loads((tmp_path / "summary.json").read_text()).items() >= summary.items()
    assert RunFolder(tmp_path).summary() == summary


def test_time_is_that_of_all_epochs(tmp_path: Path) -> None:
    trainer = new_run(tmp_path, node_problem())
    summary = trainer.fit()
    assert summary["seconds"] == pytest.approx(sum(m["seconds"] for m in trainer.folder.metrics()))
    assert summary["seconds"] > 0


def test_notes_on_the_problem_are_passed_on(tmp_path: Path) -> None:
    problem = replace(node_problem(), notes={"split": "by hand"})
    assert new_run(tmp_path, problem).fit()["notes"] == {"split": "by hand"}


@pytest.mark.parametrize(
    "problem", [node_problem(), graph_problem(), regression_problem()], ids=lambda p: p.name
)
def test_exits_are_those_of_the_best_weights(problem: Problem, tmp_path: Path) -> None:
    trainer = new_run(tmp_path, problem, batch_size=100)
    undecided(trainer.model, problem)
    trainer.fit()
    best = trainer.folder.model()
    with np.load(tmp_path / "exits.npz") as exits:
        assert set(exits.files) == {"val_layer", "val_time", "test_layer", "test_time"}
        for part in ("val", "test"):
            (batch,) = trainer.batches.part(part)
            _, expected = best.predict(batch.x, batch.adj)
            assert exits[f"{part}_layer"].dtype == np.int64
            np.testing.assert_array_equal(
                exits[f"{part}_layer"], batch.select(expected.layer).numpy()
            )
            np.testing.assert_array_equal(
                exits[f"{part}_time"], batch.select(expected.time).numpy()
            )


def test_exit_statistics_are_those_of_the_test_part(tmp_path: Path) -> None:
    problem = node_problem()
    trainer = new_run(tmp_path, problem)
    undecided(trainer.model, problem)
    found = trainer.fit()["exits"]
    with np.load(tmp_path / "exits.npz") as exits:
        layer = exits["test_layer"]
    assert found["min"] == layer.min() < layer.max()
    assert found["median"] == pytest.approx(np.median(layer), abs=0.5)
    assert found["mean"] == pytest.approx(layer.mean())
    assert found["max"] == layer.max()
    assert found["histogram"] == np.bincount(layer, minlength=5).tolist()


def test_a_finished_run_holds_the_files_of_the_contract(tmp_path: Path) -> None:
    new_run(tmp_path / "run", node_problem()).fit()
    assert {path.name for path in (tmp_path / "run").iterdir()} == {
        "config.json",
        "metrics.jsonl",
        "model.safetensors",
        "model.json",
        "state.pt",
        "exits.npz",
        "summary.json",
    }


def test_the_state_executes_nothing_when_loaded(tmp_path: Path) -> None:
    new_run(tmp_path, node_problem()).fit()
    torch.load(tmp_path / "state.pt", weights_only=True)
    state = RunFolder(tmp_path).state()
    assert state is not None
    assert state["progress"]["epoch"] == 5
