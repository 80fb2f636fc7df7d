from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from eegnn.analysis.calibrate import calibrate_run, write_calibration
from eegnn.analysis.dirichlet import dirichlet_energy
from eegnn.analysis.run import open_run
from eegnn.analysis.states import stacked_states
from eegnn.data.problem import Problem
from eegnn.report import page_run
from eegnn.report.page_run import learning_curves, run_content
from eegnn.train.metrics import accuracy, roc_auc
from eegnn.train.run import RunFolder
from eegnn.zoo.apgcn import APGCN
from tests.analysis.runs import trained
from tests.report.test_curves import LINES, written
from tests.train.problems import graph_problem, node_problem, regression_problem


def test_a_run_is_told_from_its_best_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = node_problem()
    run = trained(tmp_path / "run", problem, monkeypatch)
    model, batches = open_run(run)
    graph, test = problem.graphs[0], problem.test
    out, exits = model.predict(graph.x, graph.edge_index)
    out, y, layer = out[test], graph.y[test], exits.layer[test]
    found = run_content(run)
    summary = RunFolder(run).summary()
    assert summary is not None
    assert found["name"] == "run"
    assert found["test"] == pytest.approx(roc_auc(out, y), abs=1e-4)
    assert found["val"] == pytest.approx(summary["val"], abs=1e-4)
    assert found["params"] == summary["params"]
    counts = [int((layer == k).sum()) for k in (1, 2, 3, 4)]
    assert found["left"]["histogram"] == counts
    assert sum(counts) == test.numel()
    assert max(counts) < test.numel()
    assert found["left"]["cost"] == pytest.approx(float(layer.float().mean()) / 4, rel=1e-4)
    assert sum(found["left"]["time"]["counts"]) == test.numel()
    assert len(found["byLayer"]["left"]) == 4
    for k, value in enumerate(found["byLayer"]["left"], start=1):
        here = layer == k
        truth = accuracy(out[here], y[here]) if here.any() else None
        assert value == (None if truth is None else pytest.approx(truth, abs=1e-4))
    matrix = np.zeros((2, 2), dtype=int)
    for truth, answer in zip(y.tolist(), out.argmax(-1).tolist(), strict=True):
        matrix[truth, answer] += 1
    assert found["confusion"] == matrix.tolist()
    own = found["cost"]["own"]
    assert own["score"] == found["test"]
    assert found["cost"]["best"] == []
    assert own["cost"] == found["left"]["cost"]
    assert [point["max_layers"] for point in found["cost"]["limits"]] == [1, 2, 3, 4]
    assert found["cost"]["limits"][-1]["score"] == own["score"]
    for k, value in enumerate(found["byLayer"]["all"], start=1):
        stopped, _ = model.predict(graph.x, graph.edge_index, max_layers=k, exit_threshold=1.0)
        assert value == pytest.approx(roc_auc(stopped[test], y), abs=1e-4)
    assert found["cost"]["points"][0]["score"] == found["byLayer"]["all"][0]
    assert found["cost"]["points"][0]["cost"] == 0.25
    whole = batches.whole()
    assert whole is not None
    energy = dirichlet_energy(stacked_states(model, whole.x, whole.adj), whole.adj)
    np.testing.assert_allclose(found["dirichlet"], energy, rtol=1e-4)


def test_a_calibration_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = trained(tmp_path / "run", node_problem(), monkeypatch)
    calibration = calibrate_run(run)
    write_calibration(run, calibration)
    assert len(run_content(run)["cost"]["best"]) == len(calibration.best)


@pytest.mark.parametrize("model", ["sasgnn", "gcn", "drew"])
def test_a_model_of_fixed_depth_has_scores_by_depth(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = run_content(trained(tmp_path / "run", node_problem(), monkeypatch, model=model))
    assert not found["exits"]
    assert found["cost"] is None
    assert len(found["byLayer"]["all"]) == 4
    assert found["byLayer"]["all"][-1] == found["test"]
    assert (found["dirichlet"] is None) == (model == "drew")


@pytest.mark.parametrize("problem", [graph_problem(), regression_problem()], ids=lambda p: p.name)
def test_many_graphs(problem: Problem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = run_content(trained(tmp_path / "run", problem, monkeypatch))
    summary = RunFolder(tmp_path / "run").summary()
    assert summary is not None
    assert found["test"] == pytest.approx(summary["test"], abs=1e-3)
    assert found["lower"] == (problem.task == "regression")
    assert (found["confusion"] is None) == (problem.task == "regression")
    assert len(found["dirichlet"]) == 5
    assert [0, *found["left"]["histogram"]] == summary["exits"]["histogram"]


def test_nodes_that_freeze_have_no_cost_curve(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = trained(tmp_path / "run", node_problem(), monkeypatch, after_exit="freeze")
    found = run_content(run)
    assert found["exits"]
    assert found["cost"] is None


def test_a_model_that_halts_without_an_exit_loop_has_exits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = trained(tmp_path / "run", node_problem(), monkeypatch, model="apgcn")
    model = RunFolder(run).model()
    assert isinstance(model, APGCN)
    torch.nn.init.constant_(model.halt.bias, 1.0)
    monkeypatch.setattr(RunFolder, "model", lambda folder, device: model)
    found = run_content(run)
    assert sum(found["left"]["histogram"][:-1]) > 0
    assert found["exits"]
    assert found["cost"] is None


def test_weights_that_are_not_numbers_are_shown_as_such(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = trained(tmp_path / "run", node_problem(), monkeypatch)
    model = RunFolder(run).model()
    torch.nn.init.constant_(model.encoder.bias, float("nan"))
    monkeypatch.setattr(RunFolder, "model", lambda folder, device: model)
    found = run_content(run)
    assert found["test"] is None
    assert found["dirichlet"] == [None] * 5
    json.dumps(found, allow_nan=False)


def test_a_run_that_is_not_finished_can_be_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = trained(tmp_path / "run", node_problem(), monkeypatch)
    (run / "summary.json").unlink()
    found = run_content(run)
    assert not found["finished"]
    assert found["best"] is None


def test_of_very_many_epochs_some_are_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_run, "EPOCHS", 2)
    found = learning_curves(RunFolder(written(tmp_path / "run", LINES)))
    assert found["epoch"] == [2, 5]
    assert found["loss"] == [0.5, 0.2]
