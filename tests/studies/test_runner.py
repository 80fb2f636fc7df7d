from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from eegnn.studies import runner
from eegnn.studies.runner import do_runs, measure, train_command
from eegnn.studies.store import Book, key_of
from eegnn.studies.study import Measurement, Plan
from eegnn.train.config import Config
from eegnn.train.loop import TrainingError
from eegnn.train.results import read_results
from tests.studies import tiny
from tests.studies.test_locks import process_that_holds
from tests.studies.tiny import config


def book_in(folder: Path) -> Book:
    return Book(folder / "results", "tiny")


def test_each_run_is_done_once_and_its_folder_goes(tmp_path: Path) -> None:
    configs = [config(split=0), config(split=1)]
    begun: list[int] = []

    def watch(run: Config, line: dict[str, Any] | None) -> None:
        if line is None:
            begun.append(run.split)

    assert do_runs(configs, book_in(tmp_path), tmp_path / "runs", watch=watch) == []
    assert (
        do_runs([*configs, config(split=2)], book_in(tmp_path), tmp_path / "runs", watch=watch)
        == []
    )
    assert begun == [0, 1, 2]
    lines = read_results(tmp_path / "results" / "tiny.jsonl")
    assert [line["config"]["split"] for line in lines] == [0, 1, 2]
    assert [path.name for path in (tmp_path / "runs").iterdir()] == [".locks"]
    table = measure(tiny.cells(Plan(splits=(0, 1))), book_in(tmp_path))
    assert [len(m.lines) for m in table] == [2, 0]


def test_what_was_interrupted_goes_on_and_ends_as_if_nothing_had_happened(tmp_path: Path) -> None:
    epochs: list[int] = []

    def watch(run: Config, line: dict[str, Any] | None) -> None:
        if line is not None:
            epochs.append(line["epoch"])
            if len(epochs) == 2:
                raise KeyboardInterrupt

    wanted = config(epochs=4)
    with pytest.raises(KeyboardInterrupt):
        do_runs([wanted], book_in(tmp_path), tmp_path / "runs", watch=watch)
    do_runs([wanted], book_in(tmp_path), tmp_path / "runs", watch=watch)
    assert epochs == [1, 2, 3, 4]
    do_runs([wanted], Book(tmp_path / "whole", "tiny"), tmp_path / "others")
    parts, whole = (
        read_results(tmp_path / name / "tiny.jsonl")[0]["test"] for name in ("results", "whole")
    )
    assert parts == whole


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
def test_a_run_of_another_process_is_left_to_it(tmp_path: Path) -> None:
    child = process_that_holds(tmp_path / "runs" / ".locks", key_of(config()))
    try:
        left = do_runs([config(), config(split=1)], book_in(tmp_path), tmp_path / "runs")
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert left == [config()]
    assert len(read_results(tmp_path / "results" / "tiny.jsonl")) == 1


def test_what_another_process_finished_meanwhile_is_not_done_again(tmp_path: Path) -> None:
    late = book_in(tmp_path)
    do_runs([config()], book_in(tmp_path), tmp_path / "runs")
    assert not late.has(config())
    do_runs([config()], late, tmp_path / "runs")
    assert len(read_results(tmp_path / "results" / "tiny.jsonl")) == 1


def test_a_run_that_diverges_is_written_down_and_not_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[Config] = []

    def diverge(wanted: Config, folder: Path, *others: object) -> None:
        folder.mkdir(parents=True)
        tried.append(wanted)
        raise TrainingError("the loss is nan at epoch 3")

    monkeypatch.setattr(runner, "train", diverge)
    for _ in range(2):
        do_runs([config()], book_in(tmp_path), tmp_path / "runs")
    assert tried == [config()]
    table = measure(tiny.cells(Plan(splits=(0,))), book_in(tmp_path))
    assert [m.failed for m in table] == [1, 0]
    line = json.loads((tmp_path / "results" / "tiny.failures.jsonl").read_text())
    assert line["failed"] == "the loss is nan at epoch 3"


def test_what_is_measured_stands_in_the_line_and_a_line_without_it_does_not_count(
    tmp_path: Path,
) -> None:
    do_runs([config()], book_in(tmp_path), tmp_path / "runs")
    seen: list[Path] = []

    def look(run: Path, root: Path | None) -> int:
        assert (run / "model.safetensors").exists()
        seen.append(run)
        return 42

    measurement = Measurement("answer", look)
    for _ in range(2):
        book = Book(tmp_path / "results", "other", "answer")
        do_runs([config()], book, tmp_path / "runs", measurement=measurement)
    assert len(seen) == 1
    found = Book(tmp_path / "results", "other", "answer").find(config())
    assert found is not None
    assert found["answer"] == 42
    assert len(read_results(tmp_path / "results" / "other.jsonl")) == 1


def test_folders_are_kept_if_asked_for(tmp_path: Path) -> None:
    do_runs([config()], book_in(tmp_path), tmp_path / "runs", keep=True)
    (folder,) = (path for path in (tmp_path / "runs").iterdir() if path.is_dir())
    assert (folder / "model.safetensors").exists()


def test_the_command_says_only_what_is_not_usual() -> None:
    assert train_command(config(split=3, epochs=1000)) == (
        "eegnn train transfer-line-3@0.01 --model gcn --split 3 "
        "--set hidden_channels=2 --set num_layers=1"
    )
