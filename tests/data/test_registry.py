from __future__ import annotations

import pickle
import zipfile
from pathlib import Path

import pytest
import torch
from torch_geometric.utils import is_undirected

from eegnn.data.categories import ATOMS, BONDS
from eegnn.data.registry import DATASETS, categories_of, open_dataset


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
        "links": ["cora-link", "computers-link", "photo-link", "cs-link"],
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
    assert molecules == {name for name in DATASETS if categories_of(name) == (ATOMS, BONDS)}
    assert molecules == {"peptides-func", "peptides-struct", "ogbg-molhiv"}
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
    assert [problem.train.tolist(), problem.test.tolist()] == [[0, 1], [4, 5]]
    first = problem.graphs[0]
    assert (problem.in_channels, problem.edge_dim, problem.out_channels) == (14, 2, 21)
    assert first.x.dtype == first.edge_attr.dtype == torch.float32
    assert first.y.tolist() == [0, 20, 3]


@pytest.mark.data
def test_graphs_are_shaped_as_in_the_paper(real_root: Path) -> None:
    texas = open_dataset("texas", root=real_root).graphs[0]
    assert is_undirected(texas.edge_index)
    assert open_dataset("enzymes", root=real_root).in_channels == 21
    sums = open_dataset("cora", root=real_root).graphs[0].x.sum(dim=1)
    assert torch.allclose(sums, torch.ones_like(sums))
