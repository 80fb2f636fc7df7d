"""What training does, epoch by epoch."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from eegnn.data.problem import Problem
from eegnn.train.batches import Batches
from eegnn.train.evaluate import evaluate
from eegnn.train.loop import Trainer
from eegnn.train.metrics import METRICS
from tests.train.problems import (
    NOISY,
    graph_problem,
    new_run,
    node_problem,
    regression_problem,
    timeless,
    undecided,
)

PROBLEMS: dict[str, Callable[[], Problem]] = {
    "node": node_problem,
    "graph": graph_problem,
    "regression": regression_problem,
}


def lines_of(trainer: Trainer) -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = []
    trainer.fit(lines.append)
    return lines


def before_steps(trainer: Trainer, look: Any) -> list[Any]:
    """What `look(optimizer)` sees before each step of the optimiser."""
    seen: list[Any] = []
    trainer.optimizer.register_step_pre_hook(
        lambda optimizer, args, kwargs: seen.append(look(optimizer))
    )
    return seen


@pytest.mark.parametrize("model", ["eegnn", "sasgnn", "gcn"])
@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.filterwarnings("ignore:no unit left")  # they are free to go on
def test_the_loss_falls(model: str, problem: str, tmp_path: Path) -> None:
    settings = {"model": model, "epochs": 30, "lr": 0.03, "batch_size": 4}
    lines = lines_of(new_run(tmp_path, PROBLEMS[problem](), **settings))
    assert lines[-1]["loss"] < 0.9 * lines[0]["loss"]


@pytest.mark.parametrize("optimizer", ["adam", "adamw"])
def test_weight_decay_pulls_weights_to_0(optimizer: str, tmp_path: Path) -> None:
    norms = []
    for decay in (0.0, 1.0):
        settings = {"optimizer": optimizer, "weight_decay": decay, "epochs": 15}
        trainer = new_run(tmp_path / str(decay), node_problem(), **settings)
        trainer.fit()
        norms.append(sum(p.square().sum().item() for p in trainer.model.parameters()))
    assert norms[1] < norms[0]


def test_the_optimizer_is_the_one_asked_for(tmp_path: Path) -> None:
    for name, kind in (("adam", torch.optim.Adam), ("adamw", torch.optim.AdamW)):
        trainer = new_run(tmp_path / name, node_problem(), optimizer=name)
        assert type(trainer.optimizer) is kind


def test_the_loss_of_an_epoch_is_that_of_all_its_units(tmp_path: Path) -> None:
    problem = graph_problem()
    trainer = new_run(tmp_path, problem, model="sasgnn", epochs=1, batch_size=5, lr=1e-12)
    out = evaluate(trainer.model, Batches(problem, 5), ("train",))["train"]
    (line,) = lines_of(trainer)
    expected = torch.nn.functional.cross_entropy(out.out, out.y).item()
    assert line["loss"] == pytest.approx(expected, rel=1e-5)


def test_a_line_holds_the_scores_and_exits_after_the_epoch(tmp_path: Path) -> None:
    problem = node_problem()
    trainer = new_run(tmp_path, problem, epochs=3)
    undecided(trainer.model, problem)
    line = lines_of(trainer)[-1]
    found = evaluate(trainer.model, Batches(problem, 1), ("val", "test"))
    layers = found["val"].layer.tolist()
    assert len(set(layers)) > 1
    assert (line["val"], line["test"]) == (found["val"].score, found["test"].score)
    assert line["exit_mean"] == pytest.approx(sum(layers) / len(layers))
    assert line["exit_quantiles"] == [float(np.quantile(layers, q)) for q in (0.1, 0.5, 0.9)]


@pytest.mark.parametrize("problem", PROBLEMS)
def test_every_epoch_is_reported_and_written(problem: str, tmp_path: Path) -> None:
    trainer = new_run(tmp_path, PROBLEMS[problem](), epochs=4)
    lines = lines_of(trainer)
    assert [line["epoch"] for line in lines] == [1, 2, 3, 4]
    assert trainer.folder.metrics() == lines


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.filterwarnings("ignore:no unit left")
def test_the_test_figure_is_that_of_the_first_best_validation_epoch(
    problem: str, tmp_path: Path
) -> None:
    trainer = new_run(tmp_path, PROBLEMS[problem](), epochs=40, lr=0.05, batch_size=4)
    summary = trainer.fit()
    lines = trainer.folder.metrics()
    pick = min if problem == "regression" else max
    best = pick(lines, key=lambda line: line["val"])  # the first of equals
    assert summary["best_epoch"] == best["epoch"]
    assert (summary["val"], summary["test"]) == (best["val"], best["test"])
    assert best["epoch"] < 40, "the problem is meant to have its best epoch before the end"


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.filterwarnings("ignore:no unit left")
def test_many_graphs_are_tested_when_validation_improves(problem: str, tmp_path: Path) -> None:
    lines = lines_of(new_run(tmp_path, PROBLEMS[problem](), epochs=40, lr=0.05, batch_size=4))
    sign = -1 if problem == "regression" else 1
    best, improved = -math.inf, []
    for line in lines:
        improved.append(sign * line["val"] > best)
        best = max(best, sign * line["val"])
    assert not all(improved)
    tested = [line["test"] is not None for line in lines]
    assert tested == ([True] * 40 if problem == "node" else improved)


@pytest.mark.parametrize("problem", PROBLEMS)
def test_the_weights_kept_are_those_of_the_best_epoch(problem: str, tmp_path: Path) -> None:
    made = PROBLEMS[problem]()
    trainer = new_run(tmp_path, made, epochs=15, lr=0.05)
    summary = trainer.fit()
    found = evaluate(trainer.folder.model(), Batches(made, 32), ("val", "test"))
    assert (found["val"].score, found["test"].score) == (summary["val"], summary["test"])


@pytest.mark.parametrize("patience", [1, 3])
def test_training_stops_when_nothing_gets_better(
    patience: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scores = iter([0.5, 0.6, 0.5, 0.7, 0.7, 0.7, 0.1, 0.8, *[0.1] * 100])
    found = iter(score for score in scores for _ in range(2))  # validation and test
    monkeypatch.setitem(METRICS, "roc_auc", lambda out, y: next(found))
    trainer = new_run(tmp_path, node_problem(), epochs=50, patience=patience)
    epochs = len(lines_of(trainer))
    assert (trainer.progress.best_epoch, epochs) == {1: (2, 3), 3: (4, 7)}[patience]


def test_without_patience_training_goes_to_the_end(tmp_path: Path) -> None:
    trainer = new_run(tmp_path, node_problem(), epochs=12, lr=1e-12)
    assert trainer.fit()["epochs"] == 12
    assert trainer.progress.best_epoch == 1


@pytest.mark.parametrize(("epochs", "warm_up"), [(12, 1), (40, 2), (60, 3)])
def test_the_learning_rate_warms_up_and_falls_like_a_cosine(
    epochs: int, warm_up: int, tmp_path: Path
) -> None:
    trainer = new_run(
        tmp_path, node_problem(), model="sasgnn", epochs=epochs, lr=0.04, schedule="cosine"
    )
    rates = before_steps(trainer, lambda optimizer: optimizer.param_groups[0]["lr"])
    trainer.fit()
    rest = epochs - warm_up
    rising = [0.04 * k / warm_up for k in range(1, warm_up + 1)]
    falling = [0.04 * (1 + math.cos(math.pi * k / rest)) / 2 for k in range(rest)]
    assert rates == pytest.approx(rising + falling)


def test_a_constant_learning_rate_has_no_warm_up(tmp_path: Path) -> None:
    trainer = new_run(tmp_path, node_problem(), model="sasgnn", epochs=40, lr=0.04)
    rates = before_steps(trainer, lambda optimizer: optimizer.param_groups[0]["lr"])
    trainer.fit()
    assert rates == [0.04] * 40


def test_the_learning_rate_is_that_of_the_epoch_in_all_its_batches(tmp_path: Path) -> None:
    settings = {"epochs": 3, "lr": 0.04, "schedule": "cosine", "batch_size": 5}
    trainer = new_run(tmp_path, graph_problem(), **settings)
    rates = before_steps(trainer, lambda optimizer: optimizer.param_groups[0]["lr"])
    trainer.fit()
    assert rates == pytest.approx([0.04] * 6 + [0.02] * 3)


def norm_of_gradients(optimizer: torch.optim.Optimizer) -> float:
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    return math.sqrt(sum(p.grad.square().sum().item() for p in parameters if p.grad is not None))


def test_a_line_holds_the_mean_norm_of_the_gradients_of_its_steps(tmp_path: Path) -> None:
    trainer = new_run(tmp_path, graph_problem(), model="gcn", batch_size=5, epochs=2)
    norms = before_steps(trainer, norm_of_gradients)
    found = [line["grad"]["backbone"] for line in lines_of(trainer)]
    assert len(norms) == 6
    assert found == pytest.approx([sum(norms[:3]) / 3, sum(norms[3:]) / 3], rel=1e-5)


def test_norms_of_gradients_are_told_for_each_part_and_before_clipping(tmp_path: Path) -> None:
    trainer = new_run(tmp_path / "plain", node_problem(), epochs=1)
    norms = before_steps(trainer, norm_of_gradients)
    (line,) = lines_of(trainer)
    assert list(line["grad"]) == ["confidence", "temperature", "backbone"]
    whole = math.sqrt(sum(norm**2 for norm in line["grad"].values()))
    assert [whole] == pytest.approx(norms, rel=1e-5)
    clipped = new_run(tmp_path / "clipped", node_problem(), epochs=1, clip_norm=1e-4)
    assert lines_of(clipped)[0]["grad"] == line["grad"]


def test_gradients_are_clipped_to_the_norm(tmp_path: Path) -> None:
    norms = {}
    for limit in (None, 0.01):
        trainer = new_run(tmp_path / str(limit), node_problem(), clip_norm=limit)
        norms[limit] = before_steps(trainer, norm_of_gradients)
        trainer.fit()
    assert min(norms[None]) > 0.01
    assert norms[0.01] == pytest.approx([0.01] * 5, rel=1e-3)


def test_a_large_clip_norm_changes_nothing(tmp_path: Path) -> None:
    plain = new_run(tmp_path / "plain", node_problem()).fit()
    clipped = new_run(tmp_path / "clipped", node_problem(), clip_norm=1e6).fit()
    assert timeless(plain) == timeless(clipped)


@pytest.mark.parametrize("problem", [node_problem(), graph_problem()], ids=["node", "graph"])
def test_a_price_on_layers_makes_exits_earlier(problem: Problem, tmp_path: Path) -> None:
    depth = {}
    for weight in (0.0, 10.0):
        settings = {"cost_weight": weight, "epochs": 30, "lr": 0.05}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            lines = lines_of(new_run(tmp_path / str(weight), problem, **settings))
        depth[weight] = lines[-1]["exit_mean"]
    assert depth[10.0] < depth[0.0] - 0.5


def test_a_price_changes_the_gradient_and_not_the_reported_loss(tmp_path: Path) -> None:
    first = [
        lines_of(new_run(tmp_path / str(weight), node_problem(), epochs=2, cost_weight=weight))
        for weight in (0.0, 1.0)
    ]
    assert first[0][0]["loss"] == first[1][0]["loss"]
    assert first[0][1]["loss"] != first[1][1]["loss"]


@pytest.mark.parametrize("problem", PROBLEMS)
def test_the_seed_decides_everything(problem: str, tmp_path: Path) -> None:
    results = []
    for name, seed in (("first", 0), ("again", 0), ("other", 1)):
        settings = {"seed": seed, "batch_size": 4, **NOISY}
        lines = lines_of(new_run(tmp_path / name, PROBLEMS[problem](), **settings))
        results.append([timeless(line) for line in lines])
    assert results[0] == results[1]
    assert results[0] != results[2]


def test_the_model_hears_of_each_epoch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trainer = new_run(tmp_path, node_problem(), epochs=3)
    heard: list[int] = []
    monkeypatch.setattr(type(trainer.model), "before_epoch", lambda model, n: heard.append(n))
    trainer.fit()
    assert heard == [1, 2, 3]


def test_edge_features_are_not_given_to_models_that_take_none(tmp_path: Path) -> None:
    assert new_run(tmp_path, node_problem(edge_dim=2), model="gcn").fit()["epochs"] == 5


def test_a_line_holds_the_learning_rate_of_its_epoch(tmp_path: Path) -> None:
    trainer = new_run(tmp_path, node_problem(), epochs=3, lr=0.04, schedule="cosine")
    trainer.fit()
    rates = [line["lr"] for line in trainer.folder.metrics()]
    assert rates == pytest.approx([0.04, 0.04, 0.02])


def test_a_graph_without_nodes_is_scored_too(tmp_path: Path) -> None:
    problem = graph_problem()
    made = list(problem.graphs)
    made[int(problem.val[-1])] = Data(
        x=torch.zeros(0, 2), edge_index=torch.zeros(2, 0, dtype=torch.int64), y=torch.tensor([0])
    )
    assert math.isfinite(new_run(tmp_path, replace(problem, graphs=made)).fit()["val"])
