"""What training does, epoch by epoch."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

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
@pytest.mark.filterwarnings("ignore:nobody left")  # they are free to go on
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


@pytest.mark.parametrize("factor", [1.0, 0.25])
def test_heads_take_steps_of_their_own_length(factor: float, tmp_path: Path) -> None:
    """Adam's first step has the length of the learning rate, wherever there is a gradient."""
    settings = {"epochs": 1, "lr": 0.01, "head_lr_factor": factor}
    trainer = new_run(tmp_path, node_problem(), model="eegnn", **settings)
    before = {name: p.detach().clone() for name, p in trainer.model.named_parameters()}
    trainer.fit()
    for name, parameter in trainer.model.named_parameters():
        is_head = "confidence" in name or "temperature" in name
        step = (parameter.detach() - before[name]).abs().max().item()
        assert step == pytest.approx(0.01 * (factor if is_head else 1.0), rel=1e-2), name


def test_heads_follow_the_schedule(tmp_path: Path) -> None:
    settings = {"epochs": 6, "lr": 0.01, "head_lr_factor": 0.1, "schedule": "cosine", "warmup": 2}
    trainer = new_run(tmp_path, node_problem(), model="eegnn", **settings)
    rates = before_steps(trainer, lambda optimizer: [g["lr"] for g in optimizer.param_groups])
    lines = lines_of(trainer)
    assert [rate for rate, _ in rates] == pytest.approx([line["lr"] for line in lines])
    assert [rate for _, rate in rates] == pytest.approx([0.1 * line["lr"] for line in lines])


def test_a_model_without_heads_has_one_learning_rate(tmp_path: Path) -> None:
    trainer = new_run(tmp_path, node_problem(), model="sasgnn", head_lr_factor=0.1)
    assert [group["lr"] for group in trainer.optimizer.param_groups] == [trainer.config.lr]


def test_the_loss_of_an_epoch_is_that_of_all_its_units(tmp_path: Path) -> None:
    problem = graph_problem()
    trainer = new_run(tmp_path, problem, model="sasgnn", epochs=1, batch_size=5, lr=1e-12)
    out = evaluate(trainer.model, Batches(problem, 5), ("train",))["train"]
    (line,) = lines_of(trainer)
    expected = torch.nn.functional.cross_entropy(out.out, out.y).item()
    assert line["loss"] == pytest.approx(expected, rel=1e-5)


def test_a_line_holds_the_scores_and_exits_after_the_epoch(tmp_path: Path) -> None:
    problem = node_problem()
    options = {"continue_bias": 2.0, "head_scale": 3.0}
    trainer = new_run(tmp_path, problem, epochs=3, options=options)
    line = lines_of(trainer)[-1]
    found = evaluate(trainer.model, Batches(problem, 1), ("val", "test"))
    layers = found["val"].layer.tolist()
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
def test_the_weights_kept_are_those_of_the_best_epoch(problem: str, tmp_path: Path) -> None:
    made = PROBLEMS[problem]()
    trainer = new_run(tmp_path, made, epochs=15, lr=0.05)
    summary = trainer.fit()
    found = evaluate(trainer.folder.model(), Batches(made, 32), ("val", "test"))
    assert (found["val"].score, found["test"].score) == (summary["val"], summary["test"])


def test_the_weights_evaluated_and_kept_are_the_running_mean(tmp_path: Path) -> None:
    made = graph_problem()
    trainer = new_run(tmp_path, made, epochs=4, lr=0.05, batch_size=5, average=0.75)
    seen: list[list[torch.Tensor]] = []
    trainer.optimizer.register_step_post_hook(
        lambda *_: seen.append([p.detach().clone() for p in trainer.model.parameters()])
    )
    lines = lines_of(trainer)
    steps = math.ceil(made.train.numel() / 5)
    mean, means = seen[0], []
    for step, weights in enumerate(seen, start=1):
        if step > 1:
            mean = [0.75 * m + 0.25 * w for m, w in zip(mean, weights, strict=True)]
        if step % steps == 0:
            means.append(mean)
    assert len(means) == 4
    kept = trainer.folder.model()
    best = means[trainer.progress.best_epoch - 1]
    for found, wanted in zip(kept.parameters(), best, strict=True):
        torch.testing.assert_close(found, wanted)
    score = evaluate(kept, Batches(made, 32), ("val",))["val"].score
    assert score == lines[trainer.progress.best_epoch - 1]["val"]
    assert any(not torch.equal(a, b) for a, b in zip(kept.parameters(), seen[-1], strict=True))


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


def test_the_learning_rate_warms_up_and_falls_like_a_cosine(tmp_path: Path) -> None:
    settings = {"epochs": 12, "lr": 0.04, "schedule": "cosine", "warmup": 4}
    trainer = new_run(tmp_path, node_problem(), **settings)
    rates = before_steps(trainer, lambda optimizer: optimizer.param_groups[0]["lr"])
    trainer.fit()
    rising = [0.04 * k / 4 for k in (1, 2, 3, 4)]
    falling = [0.04 * (1 + math.cos(math.pi * k / 8)) / 2 for k in range(8)]
    assert rates == pytest.approx(rising + falling)


def test_the_learning_rate_warms_up_and_stays(tmp_path: Path) -> None:
    trainer = new_run(tmp_path, node_problem(), epochs=5, lr=0.04, warmup=2)
    rates = before_steps(trainer, lambda optimizer: optimizer.param_groups[0]["lr"])
    trainer.fit()
    assert rates == pytest.approx([0.02, 0.04, 0.04, 0.04, 0.04])


def test_the_learning_rate_is_that_of_the_epoch_in_all_its_batches(tmp_path: Path) -> None:
    settings = {"epochs": 3, "lr": 0.03, "warmup": 3, "batch_size": 5}
    trainer = new_run(tmp_path, graph_problem(), **settings)
    rates = before_steps(trainer, lambda optimizer: optimizer.param_groups[0]["lr"])
    trainer.fit()
    assert rates == pytest.approx([0.01] * 3 + [0.02] * 3 + [0.03] * 3)


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
