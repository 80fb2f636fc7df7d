from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from eegnn.data.registry import DATASETS, open_dataset
from tests.data.tiny import NODES, digest


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every way in which PyG opens a connection ends here."""

    def refuse(*args: object, **kwargs: object) -> None:
        raise OSError("Name or service not known")

    monkeypatch.delenv("EEGNN_MIRROR", raising=False)
    monkeypatch.setattr("socket.socket.connect", refuse)
    monkeypatch.setattr("socket.getaddrinfo", refuse)


@pytest.mark.parametrize(
    ("name", "split", "valid"), [("texas", 10, "0 … 9, got 10"), ("photo", 1, "0, .* got 1")]
)
def test_a_split_out_of_range_is_refused_before_anything_is_opened(
    name: str, split: int, valid: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=f"split of {name} must be {valid}"):
        open_dataset(name, split, root=tmp_path / "data")
    with pytest.raises(ValueError, match="split must be at least 0"):
        open_dataset(name, -1, root=tmp_path / "data")
    assert not (tmp_path / "data").exists()


def test_opening_from_the_mirror_leaves_it_as_it_was(mirror: Path, tmp_path: Path) -> None:
    before = digest(mirror)
    for name in ("minesweeper", "photo", "imdb-binary", "peptides-func"):
        assert DATASETS[name].place(tmp_path / "data") == "in mirror"
        open_dataset(name, root=tmp_path / "data")
        assert DATASETS[name].place(tmp_path / "data") == "on disk"
    assert digest(mirror) == before
    leftovers = list((tmp_path / "data").rglob(".*"))
    assert leftovers == []


@pytest.mark.usefixtures("mirror")
def test_what_was_opened_once_opens_without_the_mirror(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = open_dataset("peptides-func", root=tmp_path)
    monkeypatch.delenv("EEGNN_MIRROR")
    again = open_dataset("peptides-func", root=tmp_path)
    for problem in (first, again):
        assert problem.train.tolist() == [0, 1, 2, 3]
        assert problem.val.tolist() == [4, 5]
        assert problem.test.tolist() == [6, 7, 8]
    assert again.graphs[0].y.shape == (1, 10)
    assert (again.task, again.metric, again.out_channels) == ("multilabel", "ap", 10)


@pytest.mark.usefixtures("mirror")
def test_a_second_process_that_is_first_does_no_harm(tmp_path: Path) -> None:
    entry = DATASETS["photo"]

    def overtaken(root: Path) -> Sequence[Any]:
        open_dataset("photo", root=tmp_path)
        return entry.load(root)

    problem = replace(entry, load=overtaken).open(root=tmp_path)
    assert problem.graphs[0].num_nodes == NODES
    assert list(tmp_path.glob(".opening-*")) == []


@pytest.mark.usefixtures("mirror")
def test_raw_files_on_disk_are_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    open_dataset("minesweeper", root=tmp_path)
    home = tmp_path / "HeterophilousGraphDataset/minesweeper"
    for file in (home / "processed").iterdir():
        file.unlink()
    (home / "processed").rmdir()
    monkeypatch.delenv("EEGNN_MIRROR")
    assert open_dataset("minesweeper", root=tmp_path).graphs[0].num_nodes == NODES


@pytest.mark.usefixtures("mirror")
def test_standard_output_stays_clean(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for name in ("photo", "peptides-func"):
        open_dataset(name, root=tmp_path)
    assert capfd.readouterr().out == ""


@pytest.mark.usefixtures("no_network")
@pytest.mark.parametrize("name", ["questions", "texas", "cora", "enzymes", "pascalvoc-sp"])
def test_without_network_one_sentence_says_what_is_needed_and_nothing_is_left(
    name: str, tmp_path: Path
) -> None:
    root = tmp_path / "data"
    assert DATASETS[name].place(root) == "needs network"
    with pytest.raises(ConnectionError) as caught:
        open_dataset(name, root=root)
    message = str(caught.value)
    assert f"EEGNN_MIRROR name a folder that holds {DATASETS[name].folder}/raw" in message
    assert DATASETS[name].title in message
    assert "\n" not in message
    assert not root.exists()


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("minesweeper", "HeterophilousGraphDataset/minesweeper/raw/minesweeper.npz"),
        ("peptides-func", "LRGBDataset/peptidesfunc.zip"),
    ],
)
def test_damaged_raw_files_are_reported_and_nothing_is_left(
    name: str, file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    damaged = tmp_path / "mirror" / file
    damaged.parent.mkdir(parents=True)
    damaged.write_bytes(b"PK not an archive")
    monkeypatch.setenv("EEGNN_MIRROR", str(tmp_path / "mirror"))
    with pytest.raises(OSError, match=r": its raw files \(in mirror\) cannot be read") as caught:
        open_dataset(name, root=tmp_path / "data")
    assert str(caught.value).startswith(DATASETS[name].title)
    assert not (tmp_path / "data").exists()


@pytest.mark.usefixtures("mirror")
def test_a_damaged_processed_file_is_reported_with_the_remedy(tmp_path: Path) -> None:
    open_dataset("photo", root=tmp_path)
    (tmp_path / "Amazon/Photo/processed/data.pt").write_bytes(b"half")
    with pytest.raises(OSError, match=r"Photo/processed cannot be read .*remove that folder"):
        open_dataset("photo", root=tmp_path)


@pytest.mark.data
def test_the_real_mirror_is_only_read(tmp_path: Path) -> None:
    folder = Path(os.environ["EEGNN_MIRROR"]) / "WebKB/texas"
    before = digest(folder)
    open_dataset("texas", root=tmp_path)
    assert digest(folder) == before
