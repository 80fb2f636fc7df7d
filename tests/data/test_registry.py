from __future__ import annotations

import os
import pickle
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch_geometric.utils import is_undirected

from eegnn.data.opening import open_entry
from eegnn.data.problem import Problem
from eegnn.data.registry import CATEGORIES, DATASETS, categories_of, open_dataset
from tests.data.tiny import GRAPHS, NODES, digest, publish_folds, tiny_mirror


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tiny_mirror(tmp_path / "mirror")
    monkeypatch.setenv("EEGNN_MIRROR", str(folder))
    return folder


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every way in which PyG opens a connection ends here."""

    def refuse(*args: object, **kwargs: object) -> None:
        raise OSError("Name or service not known")

    monkeypatch.delenv("EEGNN_MIRROR", raising=False)
    monkeypatch.setattr("socket.socket.connect", refuse)
    monkeypatch.setattr("socket.getaddrinfo", refuse)


def parts(problem: Problem) -> list[list[int]]:
    return [part.tolist() for part in (problem.train, problem.val, problem.test)]


def assert_partition(problem: Problem, units: int) -> None:
    together = sorted(index for part in parts(problem) for index in part)
    assert together == list(range(units))


def test_the_data_sets_of_the_paper_are_registered() -> None:
    assert list(DATASETS) == [entry.name for entry in DATASETS.values()]
    families: dict[str, list[str]] = {}
    for entry in DATASETS.values():
        families.setdefault(entry.family, []).append(entry.name)
    assert families == {
        "heterophilic": ["roman-empire", "amazon-ratings", "minesweeper", "tolokers", "questions"],
        "webkb": ["texas", "wisconsin", "cornell"],
        "planetoid": ["cora", "cora-public"],
        "homophilic": ["computers", "photo", "cs", "physics"],
        "lrgb": ["peptides-func", "peptides-struct", "pascalvoc-sp"],
        "tu": [
            "enzymes",
            "proteins",
            "nci1",
            "imdb-binary",
            "imdb-multi",
            "reddit-binary",
            "reddit-multi-5k",
        ],
        "ogb": ["ogbn-arxiv", "ogbg-molhiv"],
    }


def test_an_unknown_name_is_answered_with_those_that_are_close() -> None:
    with pytest.raises(ValueError, match=r"'Amazon_Rating'.*did you mean amazon-ratings"):
        open_dataset("Amazon_Rating")
    with pytest.raises(ValueError, match=r"'xyzzy': there are roman-empire, .*ogbg-molhiv"):
        open_dataset("xyzzy")


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
    assert parts(first) == parts(again) == [[0, 1, 2, 3], [4, 5], [6, 7, 8]]
    assert again.graphs[0].y.shape == (1, 10)
    assert (again.task, again.metric, again.out_channels) == ("multilabel", "ap", 10)


@pytest.mark.usefixtures("mirror")
def test_a_second_process_that_is_first_does_no_harm(tmp_path: Path) -> None:
    entry = DATASETS["photo"]

    def overtaken(root: Path) -> Sequence[Any]:
        open_dataset("photo", root=tmp_path)
        return entry.fetch(root)

    problem = open_entry(replace(entry, fetch=overtaken), split=0, root=tmp_path)
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


@pytest.mark.usefixtures("mirror")
def test_masks_become_indices_of_the_split_asked_for(tmp_path: Path) -> None:
    problem = open_dataset("minesweeper", split=3, root=tmp_path)
    assert_partition(problem, NODES)
    assert problem.val.tolist() == [i for i in range(NODES) if (i + 3) % 4 == 1]
    assert problem.notes["split"].startswith("split 3 of")
    assert set(problem.graphs[0].keys()) == {"x", "edge_index", "y"}
    assert is_undirected(problem.graphs[0].edge_index)


@pytest.mark.usefixtures("mirror")
def test_a_split_of_our_own_is_stratified_and_says_so(tmp_path: Path) -> None:
    problem = open_dataset("photo", root=tmp_path)
    assert "our own" in problem.notes["split"]
    assert_partition(problem, NODES)
    y = problem.graphs[0].y
    counts = [torch.bincount(y[part]).tolist() for part in (problem.train, problem.val)]
    assert counts == [[6] * 4, [2] * 4]
    assert parts(problem) == parts(open_dataset("photo", root=tmp_path / "again"))


@pytest.mark.usefixtures("mirror")
def test_folds_of_our_own_partition_the_set_and_say_so(tmp_path: Path) -> None:
    folds = [open_dataset("imdb-binary", fold, root=tmp_path) for fold in range(10)]
    assert all("our own" in problem.notes["split"] for problem in folds)
    for problem in folds:
        assert_partition(problem, GRAPHS)
    assert sorted(i for problem in folds for i in problem.test.tolist()) == list(range(GRAPHS))
    labels = [[int(problem.graphs[i].y) for i in problem.test.tolist()] for problem in folds]
    assert all(sorted(label) == [0, 0, 1, 1] for label in labels)


def test_published_folds_are_used_where_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    published = publish_folds(tmp_path / "mirror")
    monkeypatch.setenv("EEGNN_MIRROR", str(tiny_mirror(tmp_path / "mirror")))
    problem = open_dataset("imdb-binary", split=7, root=tmp_path / "data")
    assert parts(problem) == [published[7][part] for part in ("train", "val", "test")]
    assert "Co-GNN" in problem.notes["split"]


@pytest.mark.usefixtures("mirror")
def test_graphs_without_features_get_the_degree(tmp_path: Path) -> None:
    problem = open_dataset("imdb-binary", root=tmp_path)
    for number, data in enumerate(problem.graphs):
        leaves = 2 + number % 3
        assert data.x.flatten().tolist() == [leaves] + [1] * leaves
    assert problem.notes["features"].startswith("the degree")


@pytest.mark.usefixtures("mirror")
def test_atoms_and_bonds_are_categories(tmp_path: Path) -> None:
    problem = open_dataset("peptides-func", root=tmp_path)
    assert problem.graphs[0].x.dtype == problem.graphs[0].edge_attr.dtype == torch.int64
    assert (problem.node_categories, problem.edge_categories) == categories_of("peptides-func")
    # 119 + 5 + 12 + 12 + 10 + 6 + 6 + 2 + 2 kinds in nine columns, 5 + 6 + 2 in three
    assert (problem.in_channels, problem.edge_dim) == (174, 13)


def test_sets_are_described_as_what_they_are() -> None:
    molecules = {name for name, entry in DATASETS.items() if "categories" in entry.features}
    assert molecules == CATEGORIES.keys()
    assert categories_of("pascalvoc-sp") == categories_of("mine.npz") == ((), ())


def test_superpixels_have_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    edges = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    graph = (torch.rand(3, 14).double(), torch.rand(4, 2).double(), edges, [0, 20, 3])
    (tmp_path / "mirror/LRGBDataset").mkdir(parents=True)
    with zipfile.ZipFile(tmp_path / "mirror/LRGBDataset/pascalvocsp.zip", "w") as packed:
        for part in ("train", "val", "test"):
            name = f"voc_superpixels_edge_wt_region_boundary/{part}.pickle"
            packed.writestr(name, pickle.dumps([graph, graph]))
    monkeypatch.setenv("EEGNN_MIRROR", str(tmp_path / "mirror"))
    problem = open_dataset("pascalvoc-sp", root=tmp_path / "data")
    assert parts(problem) == [[0, 1], [2, 3], [4, 5]]
    first = problem.graphs[0]
    assert (problem.in_channels, problem.edge_dim, problem.out_channels) == (14, 2, 21)
    assert first.x.dtype == first.edge_attr.dtype == torch.float32
    assert first.y.tolist() == [0, 20, 3]


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
    assert f"EEGNN_MIRROR name a folder that holds {DATASETS[name].home}/raw" in message
    assert DATASETS[name].title in message
    assert "\n" not in message
    assert not root.exists()


def test_damaged_raw_files_are_reported_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = tmp_path / "mirror/HeterophilousGraphDataset/minesweeper/raw"
    raw.mkdir(parents=True)
    (raw / "minesweeper.npz").write_bytes(b"PK not an archive")
    monkeypatch.setenv("EEGNN_MIRROR", str(tmp_path / "mirror"))
    with pytest.raises(OSError, match=r"Minesweeper: its raw files \(in mirror\) cannot be read"):
        open_dataset("minesweeper", root=tmp_path / "data")
    assert not (tmp_path / "data").exists()


@pytest.mark.usefixtures("mirror")
def test_a_damaged_processed_file_is_reported_with_the_remedy(tmp_path: Path) -> None:
    open_dataset("photo", root=tmp_path)
    (tmp_path / "Amazon/Photo/processed/data.pt").write_bytes(b"half")
    with pytest.raises(OSError, match=r"Photo/processed cannot be read .*remove that folder"):
        open_dataset("photo", root=tmp_path)


@pytest.mark.data
@pytest.mark.parametrize("split", [0, 9])
@pytest.mark.parametrize(
    ("name", "sizes", "units"),
    [
        ("texas", (87, 59, 37), 183),
        ("minesweeper", (5_000, 2_500, 2_500), 10_000),
        ("enzymes", (486, 54, 60), 600),
        ("cora", (1_192, 796, 497), None),  # Geom-GCN leaves 223 nodes out
    ],
)
def test_published_splits_have_the_published_sizes(
    name: str, sizes: tuple[int, ...], units: int | None, split: int, real_root: Path
) -> None:
    problem = open_dataset(name, split, root=real_root)
    assert len(problem.test) == sizes[2]
    if units is None:
        flat = [index for part in parts(problem) for index in part]
        assert len(flat) == len(set(flat))
    else:
        assert_partition(problem, units)
    if split == 0:
        assert tuple(map(len, parts(problem))) == sizes


@pytest.mark.data
def test_published_folds_partition_the_set(real_root: Path) -> None:
    tested = [open_dataset("enzymes", fold, root=real_root).test for fold in range(10)]
    assert torch.cat(tested).sort().values.tolist() == list(range(600))


@pytest.mark.data
def test_the_fixed_split_of_photo_is_the_published_one(real_root: Path) -> None:
    problem = open_dataset("photo", root=real_root)
    assert "tunedGNN" in problem.notes["split"]
    assert_partition(problem, 7_650)
    assert tuple(map(len, parts(problem))) == (4_590, 1_530, 1_530)


@pytest.mark.data
def test_graphs_are_shaped_as_in_the_paper(real_root: Path) -> None:
    texas = open_dataset("texas", root=real_root).graphs[0]
    assert is_undirected(texas.edge_index)
    assert open_dataset("enzymes", root=real_root).in_channels == 21
    sums = open_dataset("cora", root=real_root).graphs[0].x.sum(dim=1)
    assert torch.allclose(sums, torch.ones_like(sums))


@pytest.mark.data
def test_the_real_mirror_is_only_read(tmp_path: Path) -> None:
    folder = Path(os.environ["EEGNN_MIRROR"]) / "WebKB/texas"
    before = digest(folder)
    open_dataset("texas", root=tmp_path)
    assert digest(folder) == before
