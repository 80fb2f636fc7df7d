"""Trackers show each epoch once, whatever happened to the run."""

from __future__ import annotations

import csv
import importlib
import json
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

from eegnn.train.run import RunFolder
from eegnn.train.track import TRACKERS, Tracker
from tests.train.problems import Killed, small_config
from tests.train.records import line_of, state_after
from tests.train.tracker_packages import stand_ins

Curves = dict[str, dict[int, float]]


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    made = RunFolder(tmp_path / "run")
    made.start(small_config(), "classification")
    return made


@pytest.fixture(params=TRACKERS)
def name(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "tensorboard" and find_spec("tensorboard") is None:
        pytest.skip("needs TensorBoard")
    for variable in ("WANDB_MODE", "WANDB_PROJECT", "MLFLOW_TRACKING_URI"):
        monkeypatch.delenv(variable, raising=False)
    for package, stand_in in stand_ins().items():
        monkeypatch.setitem(sys.modules, package, stand_in)
    return request.param


def live(name: str, run: RunFolder, first: int, last: int, killed: bool = False) -> None:
    """A life of a run: the records are cut to the epochs before it, and it does some more."""
    run.truncate_metrics(state_after(run, first - 1))
    with Tracker(name, run.path) as record:
        for epoch in range(first, last + 1):
            run.append_metrics(line_of(epoch))
            record(line_of(epoch))
        if killed:
            raise Killed


def shown(name: str, run: RunFolder) -> Curves:
    """The values of each curve by epoch; no epoch occurs twice."""
    curves: Curves = {}
    for tag, epoch, value in READERS[name](run):
        assert epoch not in curves.setdefault(tag, {})
        curves[tag][epoch] = value
    return curves


def _read_tensorboard(run: RunFolder) -> list[tuple[str, int, float]]:
    module = "tensorboard.backend.event_processing.event_accumulator"
    events = importlib.import_module(module).EventAccumulator(
        str(run.path / "tensorboard"), size_guidance={"scalars": 0}
    )
    events.Reload()
    tags = events.Tags()["scalars"]
    return [(tag, event.step, event.value) for tag in tags for event in events.Scalars(tag)]


def _read_csv(run: RunFolder) -> list[tuple[str, int, float]]:
    with (run.path / "metrics.csv").open() as file:
        rows = [(int(row.pop("epoch")), row) for row in csv.DictReader(file)]
    return [(tag, epoch, float(cell)) for epoch, row in rows for tag, cell in row.items() if cell]


def _read_wandb(run: RunFolder) -> list[tuple[str, int, float]]:
    (log,) = (run.path / "wandb").glob("*/log.jsonl")
    lines = map(json.loads, log.read_text().splitlines())
    return [(tag, epoch, value) for epoch, line in lines for tag, value in line.items()]


def _read_mlflow(run: RunFolder) -> list[tuple[str, int, float]]:
    uri = f"sqlite:///{run.path / 'mlflow' / 'mlflow.db'}"
    client = importlib.import_module("mlflow").MlflowClient(uri)
    (found,) = client.search_runs(["1"])
    assert found.data.params["num_layers"] == "4"
    curves = (client.get_metric_history(found.info.run_id, tag) for tag in ("loss", *FIGURES))
    return [(point.key, point.step, point.value) for curve in curves for point in curve]


READERS: dict[str, Callable[[RunFolder], list[tuple[str, int, float]]]] = {
    "tensorboard": _read_tensorboard,
    "csv": _read_csv,
    "wandb": _read_wandb,
    "mlflow": _read_mlflow,
}
FIGURES = {
    "score/val": 0.5,
    "score/test": 0.25,
    "exit/mean": 2.5,
    "exit/q10": 1.0,
    "exit/q50": 2.0,
    "exit/q90": 4.0,
    "grad/confidence": 0.125,
    "lr": 0.01,
}


def test_every_figure_of_every_epoch_is_shown(name: str, run: RunFolder) -> None:
    live(name, run, 1, 3)
    curves = shown(name, run)
    assert curves.pop("loss") == pytest.approx({1: 1.0, 2: 1 / 2, 3: 1 / 3})
    assert set(curves) == set(FIGURES)
    for tag, value in FIGURES.items():
        epochs = (1, 3) if tag == "score/test" else (1, 2, 3)
        assert curves[tag] == pytest.approx(dict.fromkeys(epochs, value))


def test_a_resumed_run_shows_each_epoch_once(name: str, run: RunFolder) -> None:
    with pytest.raises(Killed):
        live(name, run, 1, 5, killed=True)
    live(name, run, 4, 8)  # epochs 4 and 5 were shown, but not finished
    assert sorted(shown(name, run)["loss"]) == [1, 2, 3, 4, 5, 6, 7, 8]


def test_epochs_before_a_tracker_was_asked_for_are_shown(name: str, run: RunFolder) -> None:
    old = line_of(1)
    del old["grad"]  # gradients were not recorded once
    run.append_metrics(old)
    live(name, run, 2, 3)
    assert sorted(shown(name, run)["loss"]) == [1, 2, 3]
    assert sorted(shown(name, run)["grad/confidence"]) == [2, 3]


def test_a_run_that_was_finished_before_is_shown(name: str, run: RunFolder) -> None:
    for epoch in (1, 2):
        run.append_metrics(line_of(epoch))
    with Tracker(name, run.path):
        pass
    assert sorted(shown(name, run)["loss"]) == [1, 2]


def test_a_run_that_fails_before_its_first_epoch_leaves_nothing(name: str, tmp_path: Path) -> None:
    with pytest.raises(Killed), Tracker(name, tmp_path / "run"):
        raise Killed
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("name", "package", "command"),
    [
        ("tensorboard", "tensorboard", r"pip install 'eegnn\[tensorboard\]'"),
        ("wandb", "wandb", "pip install wandb"),
        ("mlflow", "mlflow", "pip install mlflow"),
    ],
)
def test_a_missing_package_is_named_with_the_command_to_install_it(
    name: str, package: str, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, "torch.utils.tensorboard", raising=False)
    with pytest.raises(ImportError, match=command):
        Tracker(name, tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_mlflow_itself_keeps_a_resumed_run(run: RunFolder) -> None:
    pytest.importorskip("mlflow", reason="needs MLflow")
    with pytest.raises(Killed):
        live("mlflow", run, 1, 3, killed=True)
    live("mlflow", run, 3, 4)
    assert sorted(shown("mlflow", run)["loss"]) == [1, 2, 3, 4]


@pytest.mark.slow
def test_wandb_itself_keeps_a_resumed_run_in_one_log_without_the_network(run: RunFolder) -> None:
    pytest.importorskip("wandb", reason="needs Weights & Biases")
    with pytest.raises(Killed):
        live("wandb", run, 1, 3, killed=True)
    live("wandb", run, 3, 4)
    (log,) = (run.path / "wandb").glob("offline-run-*/run-*.wandb")
    assert log.read_bytes().count(b"exit/mean") >= 4
