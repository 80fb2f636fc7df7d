"""What experiments measure on trained models, on runs of seconds."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch

from eegnn.analysis.run import open_run
from eegnn.experiments import dirichlet, exits_learn, exits_time, oracle, sensitivity
from eegnn.studies import inference_time
from eegnn.studies.experiment import Scope
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
    found = oracle.measure(*open_run(runs["sasgnn"]))
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
    found = dirichlet.measure(*open_run(runs["sasgnn"]))
    assert len(found) == 4
    model, batches = open_run(runs["sasgnn"])
    whole = batches.whole()
    assert whole is not None
    assert whole.x is not None
    h = model.encoder(whole.x).detach().double().numpy()
    degree = np.array([1, *[2] * 8, 1])
    scaled = h / np.sqrt(degree + 1)[:, None]
    assert found[0] == pytest.approx(2 * np.sum((scaled[1:] - scaled[:-1]) ** 2), rel=1e-5)
    read = next(iter(dirichlet.cells(Scope(quick=True)))).quantity.read
    assert read({"dirichlet": [100.0]}) == 2.0


def test_sensitivity_is_that_of_one_test_graph(runs: dict[str, Path]) -> None:
    found = sensitivity.measure(*open_run(runs["gcn"]))
    assert len(found) == 3
    assert all(math.isfinite(value) and value >= 0 for value in found)


def test_exit_times_are_counted(runs: dict[str, Path]) -> None:
    found = exits_time.measure(*open_run(runs["eegnn"]))
    with np.load(runs["eegnn"] / "exits.npz") as arrays:
        times = arrays["test_time"]
    assert sum(found["counts"]) == times.size == 4
    assert found["mean"] == pytest.approx(times.mean())
    assert len(found["edges"]) == len(found["counts"]) + 1


def test_inference_time_is_read_in_milliseconds(runs: dict[str, Path]) -> None:
    seconds = inference_time.measure(*open_run(runs["gcn"]))
    assert 0 < seconds < 5
    line = {inference_time.INFERENCE_TIME.field: seconds}
    assert inference_time.MILLISECONDS.read(line) == pytest.approx(1000 * seconds)


def test_exits_learn_has_many_seeds_of_one_split_and_one_of_each_split() -> None:
    runs_of = {
        (cell.group, cell.row): [(config.split, config.seed) for config in cell.configs]
        for cell in exits_learn.cells(Scope())
    }
    assert runs_of["Minesweeper, seeds", "EEGNN"] == [(4, seed) for seed in range(100, 120)]
    assert runs_of["Tolokers, seeds", "EEGNN, as printed"] == [(4, s) for s in range(100, 110)]
    for row in ("SAS-GNN", "EEGNN", "EEGNN, as printed"):
        assert runs_of["Tolokers, splits", row] == [(split, 0) for split in range(10)]


@pytest.mark.parametrize(("mean", "cost", "collapsed"), [(2.0, 50.0, 0.0), (1.25, 31.25, 1.0)])
def test_cost_and_collapse_are_read_from_the_exits(
    mean: float, cost: float, collapsed: float
) -> None:
    line = {"exits": {"mean": mean, "histogram": [0, 1, 1, 1, 0]}}
    assert exits_learn.QUANTITIES[exits_learn.COST].read(line) == cost
    assert exits_learn.QUANTITIES[exits_learn.COLLAPSED].read(line) == collapsed
