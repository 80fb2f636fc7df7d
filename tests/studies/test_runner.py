from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from eegnn.compute import Compute
from eegnn.nn.model import GraphModel
from eegnn.studies import runner
from eegnn.studies.experiment import Measurement, Scope
from eegnn.studies.runner import Runner, train_command
from eegnn.studies.store import ResultStore, key_of
from eegnn.train.batches import Batches
from eegnn.train.config import Config
from eegnn.train.loop import TrainingError
from eegnn.train.results import read_results
from eegnn.train.schemas import NO_MODEL
from tests.studies import tiny
from tests.studies.test_run_locks import process_that_holds
from tests.studies.tiny import config


def store_in(folder: Path) -> ResultStore:
    return ResultStore(folder / "results", "tiny")


def runner_in(folder: Path, watch: runner.Watcher = lambda config, metrics: None) -> Runner:
    return Runner(store_in(folder), folder / "runs", watch=watch)


def test_each_run_is_done_once_and_its_model_is_kept(tmp_path: Path) -> None:
    configs = [config(split=0), config(split=1)]
    begun: list[int] = []

    def watch(run: Config, line: dict[str, Any] | None) -> None:
        if line is None:
            begun.append(run.split)

    assert runner_in(tmp_path, watch).run(configs) == []
    assert runner_in(tmp_path, watch).run([*configs, config(split=2)]) == []
    assert begun == [0, 1, 2]
    lines = read_results(tmp_path / "results" / "tiny.jsonl")
    assert [line["config"]["split"] for line in lines] == [0, 1, 2]
    folders = [path for path in (tmp_path / "runs").iterdir() if path.is_dir()]
    assert len(folders) == 3
    assert all((path / "model.safetensors").exists() for path in folders)
    assert not any((path / "state.pt").exists() for path in folders)
    table = store_in(tmp_path).results(tiny.cells(Scope(splits=(0, 1))))
    assert [len(result.runs) for result in table] == [2, 0]


def test_what_was_interrupted_goes_on_and_ends_as_if_nothing_had_happened(tmp_path: Path) -> None:
    epochs: list[int] = []

    def watch(run: Config, line: dict[str, Any] | None) -> None:
        if line is not None:
            epochs.append(line["epoch"])
            if len(epochs) == 2:
                raise KeyboardInterrupt

    wanted = config(epochs=4)
    with pytest.raises(KeyboardInterrupt):
        runner_in(tmp_path, watch).run([wanted])
    runner_in(tmp_path, watch).run([wanted])
    assert epochs == [1, 2, 3, 4]
    Runner(ResultStore(tmp_path / "whole", "tiny"), tmp_path / "others").run([wanted])
    parts, whole = (
        read_results(tmp_path / name / "tiny.jsonl")[0]["test"] for name in ("results", "whole")
    )
    assert parts == whole


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
def test_a_run_of_another_process_is_left_to_it(tmp_path: Path) -> None:
    child = process_that_holds(tmp_path / "runs" / ".locks", key_of(config()))
    try:
        left = runner_in(tmp_path).run([config(), config(split=1)])
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert left == [config()]
    assert len(read_results(tmp_path / "results" / "tiny.jsonl")) == 1


def test_what_another_process_finished_meanwhile_is_not_done_again(tmp_path: Path) -> None:
    late = runner_in(tmp_path)
    runner_in(tmp_path).run([config()])
    assert late.store.missing([config()]) == [config()]
    late.run([config()])
    assert len(read_results(tmp_path / "results" / "tiny.jsonl")) == 1


def test_a_run_that_diverges_is_written_down_and_not_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[Config] = []

    def diverge(wanted: Config, folder: Path, *others: object, compute: Compute) -> None:
        folder.mkdir(parents=True)
        tried.append(wanted)
        raise TrainingError("the loss is nan at epoch 3")

    monkeypatch.setattr(runner, "train", diverge)
    for _ in range(2):
        runner_in(tmp_path).run([config()])
    assert tried == [config()]
    table = store_in(tmp_path).results(tiny.cells(Scope(splits=(0,))))
    assert [len(result.failures) for result in table] == [1, 0]
    assert [path.name for path in (tmp_path / "runs").iterdir()] == [".locks"]
    line = json.loads((tmp_path / "results" / "tiny.failures.jsonl").read_text())
    assert line["failed"] == "the loss is nan at epoch 3"


def test_what_is_measured_stands_in_the_line_and_a_line_without_it_does_not_count(
    tmp_path: Path,
) -> None:
    runner_in(tmp_path).run([config()])
    seen: list[GraphModel] = []

    def measure(model: GraphModel, batches: Batches) -> int:
        assert batches.problem.name == "transfer-line-3"
        seen.append(model)
        return 42

    def watch(run: Config, line: dict[str, Any] | None) -> None:
        epochs.extend([] if line is None else [line["epoch"]])

    epochs: list[int] = []
    measurement = Measurement("answer", measure)
    # The same run, with a default of the model written out.
    wanted = config().model_copy(update={"options": {"dropout": 0.0}})
    for _ in range(2):
        store = ResultStore(tmp_path / "results", "other", "answer")
        Runner(store, tmp_path / "runs", None, measurement, watch).run([wanted])
    assert len(seen) == 1
    assert epochs == []  # the model is the one of the first run
    found = ResultStore(tmp_path / "results", "other", "answer").find(config())
    assert found is not None
    assert found["answer"] == 42
    assert len(read_results(tmp_path / "results" / "other.jsonl")) == 1


def test_what_is_measured_on_the_data_trains_nothing(tmp_path: Path) -> None:
    store = ResultStore(tmp_path, "data", "size")
    measurement = Measurement("size", lambda name, root: len(name))
    wanted = Config(dataset="transfer-line-3", model=NO_MODEL)
    assert Runner(store, tmp_path / "runs", measurement=measurement).run([wanted]) == []
    (line,) = read_results(tmp_path / "data.jsonl")
    assert (line["size"], line["config"]) == (15, wanted.model_dump())
    assert line["seconds"] >= 0
    assert {"commit", "versions", "command"} <= line.keys()


def test_the_command_says_only_what_is_not_usual() -> None:
    assert train_command(config(split=3, epochs=1000)) == (
        "eegnn train transfer-line-3@0.01 --model gcn --split 3 "
        "--set hidden_channels=2 --set num_layers=1"
    )
