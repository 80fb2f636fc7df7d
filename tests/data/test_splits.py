from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch_geometric.utils import is_undirected

from eegnn.data.problem import Problem
from eegnn.data.registry import open_dataset
from tests.data.tiny import GRAPHS, NODES, publish_folds, tiny_mirror


def parts(problem: Problem) -> list[list[int]]:
    return [part.tolist() for part in (problem.train, problem.val, problem.test)]


def assert_partition(problem: Problem, units: int) -> None:
    together = sorted(index for part in parts(problem) for index in part)
    assert together == list(range(units))


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
