from __future__ import annotations

from pathlib import Path

import pytest
import torch

from eegnn.analysis.run import open_run
from eegnn.data.problem import Problem
from eegnn.train.config import Config
from eegnn.train.evaluate import evaluate
from eegnn.train.run import RunFolder
from tests.analysis.runs import trained
from tests.train.problems import graph_problem, node_problem


@pytest.mark.parametrize("model", ["eegnn", "gcn"])
def test_a_run_is_opened_with_its_model_and_data(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = node_problem(edge_dim=2)  # which gcn does not take
    run = trained(tmp_path / "run", problem, monkeypatch, model)
    opened, batches = open_run(run)
    saved = RunFolder(run).model().state_dict()
    assert all(torch.equal(value, saved[key]) for key, value in opened.state_dict().items())
    summary = RunFolder(run).summary()
    assert summary is not None
    assert evaluate(opened, batches, ("test",))["test"].score == summary["test"]


def test_batches_are_as_large_as_in_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = trained(tmp_path / "run", graph_problem(), monkeypatch)
    assert open_run(run)[1].batch_size == 5


def test_the_data_folder_is_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = trained(tmp_path / "run", node_problem(), monkeypatch)
    asked = []

    def prepare(config: Config, root: Path | None) -> Problem:
        asked.append(root)
        return node_problem()

    monkeypatch.setattr("eegnn.analysis.run.prepare", prepare)
    open_run(run, tmp_path / "data")
    assert asked == [tmp_path / "data"]
