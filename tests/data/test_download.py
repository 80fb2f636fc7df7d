from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest

from eegnn.data.download import (
    Archive,
    copy_from_mirror,
    data_root,
    in_mirror,
    mirror_root,
    unpack_from_mirror,
)


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "mirror"
    (folder / "WebKB/texas/raw").mkdir(parents=True)
    (folder / "WebKB/texas/raw/a.txt").write_text("a")
    (folder / "WebKB/texas/raw/b.txt").write_text("b")
    monkeypatch.setenv("EEGNN_MIRROR", str(folder))
    return folder


def test_an_argument_comes_before_the_variable_and_the_variable_before_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EEGNN_DATA", str(tmp_path / "named"))
    assert data_root(tmp_path / "given") == tmp_path / "given"
    assert data_root() == tmp_path / "named"
    monkeypatch.delenv("EEGNN_DATA")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert data_root() == tmp_path / "cache/eegnn"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert data_root() == tmp_path / ".cache/eegnn"


def test_a_mirror_that_is_no_folder_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EEGNN_MIRROR", "/nowhere/at/all")
    with pytest.raises(ValueError, match=r"EEGNN_MIRROR must name a folder.*'/nowhere/at/all'"):
        mirror_root()


def test_without_a_mirror_nothing_is_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("EEGNN_MIRROR", raising=False)
    copy_from_mirror("WebKB", root=tmp_path / "data")
    assert not (tmp_path / "data").exists()
    assert not in_mirror("WebKB")


def test_files_and_folders_are_copied_and_what_is_there_is_kept(
    mirror: Path, tmp_path: Path
) -> None:
    root = tmp_path / "data"
    copy_from_mirror("WebKB/texas/raw/a.txt", "not/in/mirror", root=root)
    assert [path.name for path in root.rglob("*.txt")] == ["a.txt"]
    (root / "WebKB/texas/raw/a.txt").write_text("mine")
    copy_from_mirror("WebKB/texas/raw", root=root)
    assert (root / "WebKB/texas/raw/a.txt").read_text() == "mine"
    assert (root / "WebKB/texas/raw/b.txt").read_text() == "b"


def test_copies_of_protected_files_can_be_written(mirror: Path, tmp_path: Path) -> None:
    (mirror / "WebKB/texas/raw/a.txt").chmod(0o444)
    copy_from_mirror("WebKB", root=tmp_path / "data")
    assert (tmp_path / "data/WebKB/texas/raw/a.txt").stat().st_mode & 0o200


def test_a_copy_that_fails_leaves_no_file(
    mirror: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(source: Path, target: Path) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="no space left"):
        copy_from_mirror("WebKB", root=tmp_path / "data")
    assert [path for path in (tmp_path / "data").rglob("*") if path.is_file()] == []


def test_an_archive_is_unpacked_under_its_new_name(mirror: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(mirror / "set.zip", "w") as packed:
        packed.writestr("inside/train.pt", "x" * 10_000)
    target = tmp_path / "data/set/raw"
    unpack_from_mirror(Archive("none.zip", "inside"), target)
    assert not target.parent.exists()
    unpack_from_mirror(Archive("set.zip", "inside"), target)
    assert (target / "train.pt").read_text() == "x" * 10_000
    assert os.listdir(target.parent) == ["raw"]
    (target / "train.pt").write_text("mine")
    unpack_from_mirror(Archive("set.zip", "inside"), target)
    assert (target / "train.pt").read_text() == "mine"
