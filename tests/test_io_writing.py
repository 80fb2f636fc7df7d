"""What is refused before anything is written, and how files are written."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import torch

import eegnn.io
from eegnn import EEGNN, SASGNN, EarlyExit, load, save
from tests import saved_models

path = pytest.fixture(saved_models.path)
saved = pytest.fixture(saved_models.saved)


@pytest.mark.parametrize("name", ["model", "model.pt", "model.safetensors.bak", "model.json"])
def test_another_suffix_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"path must end in \.safetensors, got .*" + name):
        save(SASGNN(3, 4, 2), tmp_path / name)
    with pytest.raises(ValueError, match=r"path must end in \.safetensors"):
        load(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "model",
    [
        torch.nn.Linear(2, 2),
        EarlyExit(torch.nn.Identity(), torch.nn.Identity(), torch.nn.Identity(), 3),
    ],
    ids=lambda model: type(model).__name__,
)
def test_other_models_are_refused(model: Any, path: Path) -> None:
    with pytest.raises(TypeError, match=f"model must be one of .*, got {type(model).__name__}"):
        save(model, path)
    assert list(path.parent.iterdir()) == []


def test_files_get_the_usual_permissions(saved: Path) -> None:
    usual = saved.with_name("usual")
    usual.write_text("")
    assert saved.stat().st_mode == usual.stat().st_mode


def fail(*args: Any, **kwargs: Any) -> None:
    raise OSError("disk full")


@pytest.mark.parametrize("function", ["replace", "fsync"])
def test_a_failing_write_leaves_the_old_files_and_no_others(
    function: str, saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {p.name: p.read_bytes() for p in saved.parent.iterdir()}
    monkeypatch.setattr(os, function, fail)
    with pytest.raises(OSError, match="disk full"):
        save(EEGNN(3, 8, 2, 7), saved)
    assert {p.name: p.read_bytes() for p in saved.parent.iterdir()} == before
    monkeypatch.undo()
    assert load(saved).num_layers == 5


def test_an_interrupted_write_leaves_no_temporary_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*args: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        eegnn.io.write_atomically(tmp_path / "file", b"content")
    assert list(tmp_path.iterdir()) == []


def test_content_is_whole_before_it_takes_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[bytes] = []
    replace = os.replace

    def watch(source: str, target: Path) -> None:
        seen.append(Path(source).read_bytes())
        assert Path(source).parent == target.parent  # a rename is atomic within a file system
        replace(source, target)

    monkeypatch.setattr(os, "replace", watch)
    eegnn.io.write_atomically(tmp_path / "file", b"content")
    assert seen == [b"content"]
    assert (tmp_path / "file").read_bytes() == b"content"
