from __future__ import annotations

import json
import math
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch

from eegnn import SASGNN, __version__, save
from eegnn.train import run
from eegnn.train.run import RunFolder, commit
from tests.train.problems import small_config
from tests.train.records import SUMMARY, line_of, state_after


def state_of(folder: RunFolder, epochs: int = 0) -> dict[str, Any]:
    """A state that has all entries."""
    state = state_after(folder, epochs)
    state["progress"] |= {"best_epoch": 0, "best_val": None, "seconds": 0.0}
    tensors = {"model": {"w": torch.arange(3.0)}, "order": torch.zeros(1), "random": torch.zeros(1)}
    return {**state, **tensors, "optimizer": {}, "scheduler": {}, "config": "{}"}


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    made = RunFolder(tmp_path / "deep" / "run")
    made.start(small_config(patience=7, options={"nu0": 0.25}), "regression", 40.0)
    return made


def test_the_configuration_is_read_back(folder: RunFolder) -> None:
    assert folder.config() == small_config(patience=7, options={"nu0": 0.25})


def test_what_labels_are_is_read_back(folder: RunFolder) -> None:
    assert folder.labels() == ("regression", 40.0)


@pytest.mark.parametrize("labels", [None, {}, {"task": "ranking", "scale": 1.0}, {"task": 3}])
def test_damaged_labels_are_named(labels: Any, folder: RunFolder) -> None:
    path = folder.path / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "labels": labels}))
    with pytest.raises(ValueError, match=r"config\.json is damaged"):
        folder.labels()


def test_versions_and_commit_are_kept_with_the_configuration(folder: RunFolder) -> None:
    about = json.loads((folder.path / "config.json").read_text())
    assert about["versions"]["eegnn"] == __version__
    assert about["versions"]["torch"] == torch.__version__
    assert about["commit"] == commit()


def test_the_commit_of_a_checkout_is_known() -> None:
    git = ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"]
    done = subprocess.run(git, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("not a checkout")
    found = commit()
    assert found is not None
    assert done.stdout.startswith(found.rstrip("+"))


def test_without_git_the_commit_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(*args: Any, **kwargs: Any) -> None:
        raise FileNotFoundError("git")

    monkeypatch.setattr(run.subprocess, "run", absent)  # type: ignore[attr-defined]
    assert commit() is None


def test_a_second_start_is_refused_and_changes_nothing(folder: RunFolder) -> None:
    before = (folder.path / "config.json").read_bytes()
    with pytest.raises(FileExistsError, match="--resume"):
        folder.start(small_config(lr=0.5), "classification")
    assert (folder.path / "config.json").read_bytes() == before


def test_a_folder_without_a_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"holds no run: config\.json is missing"):
        RunFolder(tmp_path).config()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"[]",
        b"{}",
        b'{"config": {}}',
        b'{"config": 3}',
        b'{"config": [1]}',
        b'{"config": "ab"}',
        b'{"config": null}',
        b'{"config": {"dataset": "x", "lr": -1}}',
        b'{"config": {"dataset": "x", "optins": {}}}',
        b'{"config": {"dataset": "x", "options": 3}}',
    ],
)
def test_a_damaged_configuration_is_named(content: bytes, folder: RunFolder) -> None:
    (folder.path / "config.json").write_bytes(content)
    with pytest.raises(ValueError, match=r"config\.json is damaged"):
        folder.config()


def test_a_state_is_read_back(folder: RunFolder) -> None:
    assert folder.state() is None
    state = state_of(folder)
    folder.write_state(state)
    found = folder.state()
    assert found is not None
    assert torch.equal(found["model"]["w"], state["model"]["w"])
    assert found["progress"] == state["progress"]


@pytest.mark.parametrize("key", ["model", "optimizer", "order", "random", "progress", "metrics"])
def test_a_state_without_an_entry_is_refused(key: str, folder: RunFolder) -> None:
    state = state_of(folder)
    del state[key]
    folder.write_state(state)
    with pytest.raises(ValueError, match=rf"state\.pt is damaged: {key}: field required"):
        folder.state()


def test_a_metric_that_was_changed_is_refused_wherever_it_is_read(folder: RunFolder) -> None:
    folder.append_metrics(line_of(1))
    folder.write_state(state_of(folder, epochs=1))
    path = folder.path / "metrics.jsonl"
    path.write_text(path.read_text().replace('"val": 0.5', '"val": 0.6'))
    with pytest.raises(ValueError, match=r"metrics\.jsonl is damaged: it was changed"):
        folder.metrics()


@pytest.mark.parametrize("name", ["config.json", "summary.json"])
def test_a_digit_that_was_changed_is_found(name: str, folder: RunFolder) -> None:
    folder.write_summary(SUMMARY)
    path = folder.path / name
    path.write_text(path.read_text().replace('"epochs": 5', '"epochs": 4'))
    with pytest.raises(ValueError, match=rf"{name} is damaged: it was changed .*remove its entry"):
        folder.config() if name == "config.json" else folder.summary()


@pytest.mark.parametrize("content", ["[]", "null", "{}", "[" * 100_000, '{"val": "high"}'])
@pytest.mark.parametrize("name", ["summary.json", "metrics.jsonl"])
def test_records_of_another_kind_are_refused_by_name(
    name: str, content: str, folder: RunFolder
) -> None:
    (folder.path / name).write_text(content)
    with pytest.raises(ValueError, match=rf"{re.escape(name)}.* is damaged: "):
        getattr(folder, name.split(".")[0])()


class Bomb:
    fired = False

    def __reduce__(self) -> tuple[Any, ...]:
        return setattr, (Bomb, "fired", True)


def test_a_state_with_code_is_refused_and_not_run(folder: RunFolder) -> None:
    Bomb.fired = False
    torch.save({"model": Bomb()}, folder.path / "state.pt")
    with pytest.raises(ValueError, match=r"state\.pt is damaged"):
        folder.state()
    assert not Bomb.fired


def test_metrics_are_appended_and_read_back(folder: RunFolder) -> None:
    assert folder.metrics() == []
    lines = [line_of(k) for k in (1, 2, 3)]
    for line in lines:
        folder.append_metrics(line)
    assert folder.metrics() == lines
    assert len((folder.path / "metrics.jsonl").read_text().splitlines()) == 3


@pytest.mark.parametrize("epochs", [0, 2, 3])
def test_unfinished_epochs_are_forgotten(epochs: int, folder: RunFolder) -> None:
    for k in (1, 2, 3):
        folder.append_metrics(line_of(k))
    folder.truncate_metrics(state_after(folder, epochs))
    assert [line["epoch"] for line in folder.metrics()] == [1, 2, 3][:epochs]


def test_a_line_that_was_cut_is_forgotten_if_its_epoch_was_not_finished(folder: RunFolder) -> None:
    folder.append_metrics(line_of(1))
    with (folder.path / "metrics.jsonl").open("a") as file:
        file.write('{"epo')
    folder.truncate_metrics(state_after(folder, 1))
    assert folder.metrics() == [line_of(1)]


@pytest.mark.parametrize("content", ["", '{"epoch": 1}\n', '{"epoch": 1}\n{"epoch": 2}'])
def test_missing_lines_of_finished_epochs_are_an_error(content: str, folder: RunFolder) -> None:
    (folder.path / "metrics.jsonl").write_text(content)
    with pytest.raises(ValueError, match=r"metrics\.jsonl is damaged: 2 epochs were finished"):
        folder.truncate_metrics({"progress": {"epoch": 2}, "metrics": ""})
    assert (folder.path / "metrics.jsonl").read_text() == content


def test_a_summary_is_read_back(folder: RunFolder) -> None:
    assert folder.summary() is None
    folder.write_summary(SUMMARY)
    assert folder.summary() == SUMMARY


def test_a_score_that_is_not_a_number_is_null_on_disk_and_nan_when_read(folder: RunFolder) -> None:
    folder.write_summary({**SUMMARY, "test": math.nan})
    assert json.loads((folder.path / "summary.json").read_text())["test"] is None
    found = folder.summary()
    assert found is not None
    assert math.isnan(found["test"])


def test_the_best_model_is_loaded(folder: RunFolder) -> None:
    model = SASGNN(3, 4, 2, 5)
    save(model, folder.model_path)
    loaded = folder.model()
    assert repr(loaded) == repr(model)
    for before, after in zip(model.parameters(), loaded.parameters(), strict=True):
        assert torch.equal(before, after)


def test_its_repr_names_the_folder() -> None:
    assert repr(RunFolder(Path("runs/cora"))) == "RunFolder('runs/cora')"


@pytest.mark.parametrize("name", ["summary.json", "metrics.jsonl"])
def test_damaged_records_are_refused_by_name(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text('{"epoch"\n')
    with pytest.raises(ValueError, match=re.escape(name)):
        getattr(RunFolder(tmp_path), name.split(".")[0])()
