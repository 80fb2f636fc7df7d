"""Event files show each epoch once, whatever happened to the run."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

from eegnn.report.tensorboard import EventFiles
from eegnn.train.run import RunFolder
from tests.train.problems import Killed, small_config

needs_tensorboard = pytest.mark.skipif(
    importlib.util.find_spec("tensorboard") is None, reason="needs TensorBoard"
)


def line_of(epoch: int) -> dict[str, Any]:
    return {
        "epoch": epoch,
        "loss": 1.0 / epoch,
        "val": 0.5,
        "test": 0.25,
        "exit_mean": 2.5,
        "exit_quantiles": [1.0, 2.0, 4.0],
        "grad": {"confidence": 0.125},
        "lr": 0.01,
    }


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    made = RunFolder(tmp_path / "run")
    made.start(small_config(), "classification")
    return made


def live(run: RunFolder, first: int, last: int, killed: bool = False) -> None:
    """A life of a run: the records are cut to the epochs before it, and it does some more."""
    run.truncate_metrics(first - 1)
    with EventFiles(run.path) as record:
        for epoch in range(first, last + 1):
            run.append_metrics(line_of(epoch))
            record(line_of(epoch))
        if killed:
            raise Killed


def shown(run: RunFolder) -> dict[str, list[tuple[int, float]]]:
    """What TensorBoard would show: steps and values of each curve."""
    name = "tensorboard.backend.event_processing.event_accumulator"
    events = importlib.import_module(name).EventAccumulator(
        str(run.path / "tensorboard"), size_guidance={"scalars": 0}
    )
    events.Reload()
    return {
        tag: [(event.step, event.value) for event in events.Scalars(tag)]
        for tag in events.Tags()["scalars"]
    }


@needs_tensorboard
def test_every_figure_of_every_epoch_is_shown(run: RunFolder) -> None:
    live(run, 1, 3)
    curves = shown(run)
    assert dict(curves.pop("loss")) == pytest.approx({1: 1.0, 2: 1 / 2, 3: 1 / 3})
    assert dict(curves.pop("lr")) == pytest.approx({1: 0.01, 2: 0.01, 3: 0.01})
    expected = {
        "score/val": 0.5,
        "score/test": 0.25,
        "exit/mean": 2.5,
        "exit/q10": 1.0,
        "exit/q50": 2.0,
        "exit/q90": 4.0,
        "grad/confidence": 0.125,
    }
    assert curves == {tag: [(n, value) for n in (1, 2, 3)] for tag, value in expected.items()}


@needs_tensorboard
def test_a_resumed_run_shows_each_epoch_once(run: RunFolder) -> None:
    with pytest.raises(Killed):
        live(run, 1, 5, killed=True)
    live(run, 4, 8)  # epochs 4 and 5 were shown, but not finished
    assert [step for step, _ in shown(run)["loss"]] == [1, 2, 3, 4, 5, 6, 7, 8]


@needs_tensorboard
def test_epochs_before_tensorboard_was_asked_for_are_shown(run: RunFolder) -> None:
    for epoch in (1, 2):
        run.append_metrics(line_of(epoch))
    live(run, 3, 4)
    assert [step for step, _ in shown(run)["loss"]] == [1, 2, 3, 4]


@needs_tensorboard
def test_a_run_that_was_finished_before_is_shown(run: RunFolder) -> None:
    for epoch in (1, 2):
        run.append_metrics(line_of(epoch))
    with EventFiles(run.path):
        pass
    assert [step for step, _ in shown(run)["loss"]] == [1, 2]


@needs_tensorboard
def test_lines_from_before_gradients_were_told_are_shown(run: RunFolder) -> None:
    old = line_of(1)
    del old["grad"]
    run.append_metrics(old)
    live(run, 2, 2)
    assert [step for step, _ in shown(run)["loss"]] == [1, 2]
    assert [step for step, _ in shown(run)["grad/confidence"]] == [2]


@needs_tensorboard
def test_a_run_that_fails_before_its_first_epoch_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(Killed), EventFiles(tmp_path / "run"):
        raise Killed
    assert not (tmp_path / "run").exists()


def test_without_tensorboard_the_error_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    monkeypatch.delitem(sys.modules, "torch.utils.tensorboard", raising=False)
    with pytest.raises(ImportError, match=r"pip install 'eegnn\[tensorboard\]'"):
        EventFiles(tmp_path / "run")
    assert not (tmp_path / "run").exists()
