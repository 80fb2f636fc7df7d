"""A power-law graph that was written piece by piece."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from eegnn import EEGNN, Adjacency
from eegnn.data import powerlaw_files
from eegnn.data.powerlaw_files import write_powerlaw
from eegnn.engine.blocked import cut_in_order, infer, inference
from eegnn.source import MappedGraph

NODES = 16_000


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> MappedGraph:
    patch = pytest.MonkeyPatch()
    patch.setattr(powerlaw_files, "ROWS", 3000)  # several pieces, the last one smaller
    patch.setattr(powerlaw_files, "EDGES", 7001)
    try:
        return write_powerlaw(tmp_path_factory.mktemp("graph"), NODES, seed=1)
    finally:
        patch.undo()


def test_its_structure_is_symmetric_sorted_and_without_loops(graph: MappedGraph) -> None:
    x, adj = graph.whole()
    again = Adjacency.from_edge_index(adj.edge_index, NODES, directed=True)
    assert not again.is_directed
    for name in ("rowptr", "col", "degree"):
        assert torch.equal(getattr(again, name), getattr(adj, name))
    assert x.shape == (NODES, 16)
    assert sorted(path.name for path in graph.folder.iterdir()) == [
        f"graph.{name}.npy" for name in ("col", "rowptr", "x", "y")
    ]


def test_degrees_are_skewed_and_most_edges_stay_in_a_community(graph: MappedGraph) -> None:
    _, adj = graph.whole()
    assert 9 < adj.num_edges / NODES <= 10
    assert int(adj.degree.max()) > 8 * 10
    inside = adj.edge_index[0] // 1000 == adj.edge_index[1] // 1000
    assert 0.7 < float(inside.double().mean()) < 0.85


def test_features_hint_at_the_labels(graph: MappedGraph) -> None:
    y = torch.from_numpy(np.load(graph.folder / "graph.y.npy"))
    x = graph.x.clone()
    assert y.unique().tolist() == list(range(8))
    means = torch.stack([x[y == label].mean(dim=0) for label in range(8)])
    torch.testing.assert_close(means.norm(dim=1), torch.full((8,), 0.7), atol=0.1, rtol=0)


def test_the_same_seed_gives_the_same_graph(tmp_path: Path) -> None:
    first, second = (write_powerlaw(tmp_path / name, NODES, seed=3) for name in "ab")
    assert torch.equal(first.col, second.col)
    assert torch.equal(first.x, second.x)


def test_blocks_of_mapped_files_give_what_the_whole_graph_gives(
    graph: MappedGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where blocks are made anew in each layer."""
    torch.manual_seed(0)
    x, adj = graph.whole()
    model = EEGNN(16, 8, 8, 5, continue_bias=None, head_layers=2)
    truth, known = model.predict(x, adj)
    blocks = cut_in_order(adj, 5000)
    assert [core.numel() for core in blocks.cores] == [5000, 5000, 5000, 1000]
    for kept in (2**25, 0):
        monkeypatch.setattr(inference, "KEPT_EDGES", kept)
        out, exits = infer(model, x, blocks)
        assert torch.equal(exits.layer, known.layer)
        torch.testing.assert_close(out, truth, rtol=1e-5, atol=1e-5)


def test_a_graph_of_few_communities_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="nodes must be at least 16000, got 999"):
        write_powerlaw(tmp_path / "g", 999)
    assert not (tmp_path / "g").exists()
