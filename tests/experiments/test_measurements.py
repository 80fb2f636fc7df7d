"""What experiments measure on trained models, on runs of seconds."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from eegnn.analysis.oracle import oracle_of_run
from eegnn.analysis.run import open_run
from eegnn.experiments import dirichlet, exits_learn, exits_time, oracle, sensitivity, stopwatch
from eegnn.experiments.study import Plan
from eegnn.train.config import make_config
from eegnn.train.metrics import score_of
from eegnn.train.start import train


def board(folder: Path, size: int = 10) -> str:
    """A path of nodes in a file, whose class is the sign of the first feature."""
    x = np.random.default_rng(0).normal(size=(size, 3)).astype(np.float32)
    edges = np.array([[i, i + 1] for i in range(size - 1)]).T
    third = np.arange(size) % 3
    path = folder / "path.npz"
    np.savez(
        path,
        x=x,
        edge_index=np.concatenate([edges, edges[::-1]], axis=1),
        y=(x[:, 0] > 0).astype(np.int64),
        train_mask=third == 1,
        val_mask=third == 2,
        test_mask=third == 0,
    )
    return str(path)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("measured")
    found = {}
    for model, dataset in (
        ("sasgnn", board(folder)),
        ("eegnn", board(folder)),
        ("gcn", "transfer-line-3@0.01"),
    ):
        config = make_config(
            {"dataset": dataset, "model": model, "num_layers": 3, "hidden_channels": 4, "epochs": 2}
        )
        found[model] = folder / model
        train(config, found[model])
    return found


def test_the_oracle_takes_the_logits_of_a_layer_that_is_right(runs: dict[str, Path]) -> None:
    found = oracle.look(runs["sasgnn"], None)
    model, batches = open_run(runs["sasgnn"])
    whole, (test,) = batches.whole(), batches.part("test")
    assert whole is not None
    outs = [model.predict(whole.x, whole.adj, max_layers=layer)[0] for layer in range(1, 4)]
    picked = []
    for node, label in zip(
        torch.as_tensor(test.index).flatten().tolist(), test.labels, strict=True
    ):
        right = [out[node] for out in outs if int(out[node].argmax()) == int(label)]
        picked.append(right[-1] if right else outs[-1][node])
    score = score_of(torch.stack(picked), test.labels, batches.problem.metric)
    assert found["latest"] == pytest.approx(score)


def test_energies_are_those_of_the_equation(runs: dict[str, Path]) -> None:
    found = dirichlet.look(runs["sasgnn"], None)
    assert len(found) == 4
    model, batches = open_run(runs["sasgnn"])
    whole = batches.whole()
    assert whole is not None
    assert whole.x is not None
    h = model.encoder(whole.x).detach().double().numpy()
    degree = np.array([1, *[2] * 8, 1])
    scaled = h / np.sqrt(degree + 1)[:, None]
    assert found[0] == pytest.approx(2 * np.sum((scaled[1:] - scaled[:-1]) ** 2), rel=1e-5)
    read = dirichlet.cells(Plan(quick=True))[0].quantity.read
    assert read({"dirichlet": [100.0]}) == 2.0


def test_sensitivity_is_that_of_one_test_graph(runs: dict[str, Path]) -> None:
    found = sensitivity.look(runs["gcn"], None)
    assert len(found) == 3
    assert all(math.isfinite(value) and value >= 0 for value in found)


def test_exit_times_are_counted(runs: dict[str, Path]) -> None:
    found = exits_time.look(runs["eegnn"], None)
    with np.load(runs["eegnn"] / "exits.npz") as arrays:
        times = arrays["test_time"]
    assert sum(found["counts"]) == times.size == 4
    assert found["mean"] == pytest.approx(times.mean())
    assert len(found["edges"]) == len(found["counts"]) + 1


def test_the_stopwatch_is_read_in_milliseconds(runs: dict[str, Path]) -> None:
    seconds = stopwatch.look(runs["gcn"], None)
    assert 0 < seconds < 5
    line = {stopwatch.STOPWATCH.field: seconds}
    assert stopwatch.MILLISECONDS.read(line) == pytest.approx(1000 * seconds)


@pytest.mark.parametrize("rule", ["third_less", "small"])
def test_exit_rules_cost_and_score_what_prediction_does(rule: str, runs: dict[str, Path]) -> None:
    found = exits_learn.look(runs["eegnn"], None)[rule]
    model, batches = open_run(runs["eegnn"])
    (test,) = batches.part("test")
    whole = batches.whole()
    assert whole is not None
    out, exits = model.predict(whole.x, whole.adj, exit_threshold=found["threshold"])
    layer = test.of(exits.layer).double()
    assert found["cost"] == pytest.approx(layer.mean().item() / model.num_layers)
    score = score_of(test.of(out), test.labels, batches.problem.metric)
    assert found["score"] == pytest.approx(score)
    assert exits_learn.look(runs["sasgnn"], None) == {}


def test_the_gap_to_the_optimal_exit_is_that_of_the_oracle(tmp_path: Path) -> None:
    settings = {"model": "eegnn", "num_layers": 6, "hidden_channels": 8, "epochs": 5}
    train(make_config({"dataset": board(tmp_path, size=60), **settings}), tmp_path / "run")
    found = exits_learn.look(tmp_path / "run", None)["gap_closed"]
    optimal = oracle_of_run(tmp_path / "run", pick="latest")
    gap = optimal.score - optimal.full_score
    assert gap > 0
    assert found == pytest.approx((optimal.own_score - optimal.full_score) / gap)


def test_exits_are_set_beside_distances(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"num_layers": 6, "hidden_channels": 8, "epochs": 2}
    settings["options"] = {"continue_bias": None}
    config = make_config({"dataset": "echo-sssp@0.002", "model": "eegnn", **settings})
    train(config, tmp_path / "run")
    model, batches = open_run(tmp_path / "run")
    layers, distances = [], []
    for units in batches.part("test"):
        _, exits = model.predict(units.x, units.adj)
        layers += units.of(exits.layer).tolist()
        distances += units.labels.view(-1).tolist()
    expected = np.corrcoef(layers, distances)[0, 1]
    found = exits_learn.look(tmp_path / "run", None)["relation"]
    assert found == pytest.approx(expected)
    assert np.std(layers) > 0


def test_exits_that_are_all_the_same_tell_nothing_of_distances() -> None:
    distances = torch.tensor([1.0, 2.0, 4.0])
    assert exits_learn.correlation(torch.full((3,), 40.0), distances) == 0
    assert exits_learn.correlation(torch.tensor([3.0, 2.0, 0.0]), distances) == pytest.approx(-1)


def test_every_run_of_exits_learn_has_its_seed() -> None:
    cells = exits_learn.cells(Plan())
    runs_of = {(c.group, c.row): [(r.split, r.seed) for r in c.configs] for c in cells}
    assert len(set(runs_of["Minesweeper", "EEGNN"])) == 20
    assert runs_of["Tolokers", "EEGNN"] == [(0, s) for s in range(5)] + [
        (1, s + 5) for s in range(5)
    ]
    assert len(set(runs_of["ECHO sssp", "SAS-GNN"])) == 10
