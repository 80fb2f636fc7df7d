"""A run that was stopped and resumed ends with the bits of the run that was not."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import eegnn.io
from eegnn.data.problem import Problem
from eegnn.train.loop import Trainer
from eegnn.train.run import RunFolder
from tests.train.problems import (
    NOISY,
    Killed,
    graph_problem,
    killed_after,
    new_run,
    node_problem,
    outcome,
    regression_problem,
    resumed_run,
)

EPOCHS = 6
CASES: dict[str, tuple[Callable[[], Problem], dict[str, Any]]] = {
    "node": (node_problem, NOISY),
    "graph": (graph_problem, {**NOISY, "batch_size": 5}),
    "schedule": (
        regression_problem,
        {
            "options": {"dropout": 0.3},
            "batch_size": 4,
            "schedule": "cosine",
            "optimizer": "adamw",
            "weight_decay": 0.01,
            "clip_norm": 0.1,
            "cost_weight": 0.01,
        },
    ),
    "patience": (node_problem, {**NOISY, "patience": 3, "lr": 1e-4, "epochs": 50}),
    "signs": (node_problem, {"encoding": "lappe:2"}),
    "gcn": (graph_problem, {"model": "gcn", "options": {"dropout": 0.3}, "batch_size": 5}),
}


@pytest.fixture(scope="module", params=CASES)
def case(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Problem, dict[str, Any], Any]:
    """A problem, settings, and the outcome of the unbroken run."""
    make, settings = CASES[request.param]
    settings = {"epochs": EPOCHS, **settings}
    path = tmp_path_factory.mktemp(request.param)
    new_run(path / "unbroken", make(), **settings).fit()
    return make(), settings, outcome(path / "unbroken")


def stop_after_epoch(path: Path, problem: Problem, settings: dict[str, Any], epoch: int) -> None:
    with pytest.raises(Killed):
        new_run(path, problem, **settings).fit(killed_after(epoch))


def scramble_random_numbers() -> None:
    """What a new process would have is not what this one has."""
    torch.manual_seed(999)
    torch.rand(7)


@pytest.mark.parametrize("epoch", [1, 2, 5])
def test_stopped_after_an_epoch(epoch: int, case: Any, tmp_path: Path) -> None:
    problem, settings, expected = case
    epoch = min(epoch, len(expected["metrics"]) - 1)
    stop_after_epoch(tmp_path / "run", problem, settings, epoch)
    scramble_random_numbers()
    trainer = resumed_run(tmp_path / "run", problem)
    assert trainer.progress.epoch == epoch
    trainer.fit()
    assert outcome(tmp_path / "run") == expected


def test_stopped_after_every_epoch(case: Any, tmp_path: Path) -> None:
    problem, settings, expected = case
    last = len(expected["metrics"])
    stop_after_epoch(tmp_path / "run", problem, settings, 1)
    for epoch in range(2, last + 1):
        scramble_random_numbers()
        with pytest.raises(Killed):
            resumed_run(tmp_path / "run", problem).fit(killed_after(epoch))
    resumed_run(tmp_path / "run", problem).fit()
    assert outcome(tmp_path / "run") == expected


def test_stopped_before_the_first_epoch(case: Any, tmp_path: Path) -> None:
    problem, settings, expected = case
    new_run(tmp_path / "run", problem, **settings)
    scramble_random_numbers()
    resumed_run(tmp_path / "run", problem).fit()
    assert outcome(tmp_path / "run") == expected


@pytest.mark.parametrize("method", ["append_metrics", "write_state"])
@pytest.mark.parametrize("moment", ["before", "after"])
def test_stopped_around_a_write(
    method: str, moment: str, case: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem, settings, expected = case
    trainer = new_run(tmp_path / "run", problem, **settings)
    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, method, dying(getattr(RunFolder, method), 3, moment))
        with pytest.raises(Killed):
            trainer.fit()
    scramble_random_numbers()
    resumed_run(tmp_path / "run", problem).fit()
    assert outcome(tmp_path / "run") == expected


def dying(function: Callable[..., Any], call: int, moment: str) -> Callable[..., Any]:
    """The function, but its n-th call ends the process before or after its work."""
    calls = iter(range(1, 10**6))

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        now = next(calls) == call
        if now and moment == "before":
            raise Killed
        result = function(*args, **kwargs)
        if now:
            raise Killed
        return result

    return wrapped


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("case", ["node", "graph"], indirect=True)
def test_stopped_at_every_file_that_is_put_in_place(
    moment: str, case: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem, settings, expected = case
    for call in range(1, 100):
        path = tmp_path / f"run-{call}"
        trainer = new_run(path, problem, **settings)
        with monkeypatch.context() as patch:
            patch.setattr(eegnn.io.os, "replace", dying(os.replace, call, moment))  # type: ignore[attr-defined]
            try:
                trainer.fit()
            except Killed:
                pass
            else:
                break
        scramble_random_numbers()
        resumed_run(path, problem).fit()
        assert outcome(path) == expected, f"file {call}"
    assert call > EPOCHS, "the run is meant to write many files"


def test_stopped_in_the_middle_of_an_epoch(tmp_path: Path) -> None:
    problem, settings = graph_problem(), {**NOISY, "batch_size": 5, "epochs": EPOCHS}
    new_run(tmp_path / "unbroken", problem, **settings).fit()
    for step in (1, 5, 9):
        trainer = new_run(tmp_path / str(step), problem, **settings)
        trainer.optimizer.register_step_post_hook(counting_down(step))
        with pytest.raises(Killed):
            trainer.fit()
        resumed_run(tmp_path / str(step), problem).fit()
        assert outcome(tmp_path / str(step)) == outcome(tmp_path / "unbroken")


def counting_down(steps: int) -> Callable[..., None]:
    left = iter(range(steps - 1, -1, -1))

    def hook(*args: Any) -> None:
        if next(left) == 0:
            raise Killed

    return hook


def test_stopped_before_the_summary(
    case: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem, settings, expected = case
    trainer = new_run(tmp_path / "run", problem, **settings)
    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "write_summary", dying(RunFolder.write_summary, 1, "before"))
        with pytest.raises(Killed):
            trainer.fit()
    again = resumed_run(tmp_path / "run", problem)
    lines: list[dict[str, Any]] = []
    again.fit(lines.append)
    assert lines == []
    assert outcome(tmp_path / "run") == expected


def test_a_finished_run_resumed_stays_as_it_is(case: Any, tmp_path: Path) -> None:
    problem, settings, expected = case
    new_run(tmp_path / "run", problem, **settings).fit()
    resumed_run(tmp_path / "run", problem).fit()
    assert outcome(tmp_path / "run") == expected


def test_time_adds_up_over_lives(tmp_path: Path) -> None:
    stop_after_epoch(tmp_path, node_problem(), {"epochs": 4}, 2)
    trainer = resumed_run(tmp_path, node_problem())
    spent = trainer.progress.seconds
    summary = trainer.fit()
    assert spent > 0
    assert summary["seconds"] == pytest.approx(sum(m["seconds"] for m in trainer.folder.metrics()))


def test_random_numbers_matter_in_these_runs(tmp_path: Path) -> None:
    """Or else resuming could forget them and nobody would see."""
    for name in ("node", "graph"):
        make, settings = CASES[name]
        new_run(tmp_path / name, make(), **settings).fit()
        stop_after_epoch(tmp_path / f"{name}-forgetful", make(), settings, 2)
        trainer: Trainer = resumed_run(tmp_path / f"{name}-forgetful", make())
        scramble_random_numbers()
        trainer.fit()
        assert outcome(tmp_path / f"{name}-forgetful") != outcome(tmp_path / name)


def test_a_state_from_before_a_setting_existed_is_taken_up(tmp_path: Path) -> None:
    new_run(tmp_path / "unbroken", node_problem(), epochs=4).fit()
    with pytest.raises(Killed):
        new_run(tmp_path / "old", node_problem(), epochs=4).fit(killed_after(2))
    folder = RunFolder(tmp_path / "old")
    state = folder.state()
    assert state is not None
    config = json.loads(state["config"])
    assert config.pop("encoding") == "none"
    state["progress"]["best_test"] = 0.5  # not kept any more
    folder.write_state({**state, "config": json.dumps(config)})
    resumed_run(tmp_path / "old", node_problem()).fit()
    assert outcome(tmp_path / "old") == outcome(tmp_path / "unbroken")
    folder.write_state({**state, "config": json.dumps({**config, "lr": 0.5})})
    with pytest.raises(ValueError, match=r"config\.json was changed"):
        resumed_run(tmp_path / "old", node_problem())
