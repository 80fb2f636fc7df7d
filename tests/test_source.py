"""Every source tells the same of a graph as its edge list does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data, FeatureStore, GraphStore
from torch_geometric.testing import MyFeatureStore, MyGraphStore

from eegnn import EEGNN, Adjacency
from eegnn.source import GraphSource, MappedGraph, StoreGraph, TensorGraph, write_graph
from tests.graphs import Pairs, both_ways

PAIRS: Pairs = [(0, 1), (1, 2), (2, 0), (2, 3), (5, 6)]
N = 8


def graph() -> tuple[Tensor, Adjacency]:
    x = torch.arange(2.0 * N).view(N, 2)
    return x, Adjacency.from_edge_index(both_ways(PAIRS), N)


def of_stores(layout: str) -> StoreGraph:
    """A remote store, as PyG's own tests imitate it."""
    (x, adj), features, edges = graph(), MyFeatureStore(), MyGraphStore()
    features.put_tensor(x, group_name="paper", attr_name="x", index=None)
    index: Any = (adj.rowptr.long(), adj.col.long())
    index = {"csr": index, "csc": index[::-1], "coo": tuple(adj.edge_index)}[layout]
    kind = ("paper", "cites", "paper")
    edges.put_edge_index(index, edge_type=kind, layout=layout, size=(N, N))
    return StoreGraph(features, edges, group_name="paper", edge_type=kind)


def of_data() -> StoreGraph:
    x, _ = graph()
    data = Data(x=x, edge_index=both_ways(PAIRS))
    assert isinstance(data, FeatureStore)
    assert isinstance(data, GraphStore)
    return StoreGraph(data, data)


@pytest.fixture(params=["tensors", "mapped", "csr", "csc", "coo", "data", "changed"])
def source(request: pytest.FixtureRequest, tmp_path: Path) -> GraphSource:
    x, adj = graph()
    if request.param == "tensors":
        return TensorGraph(x, adj)
    if request.param == "mapped":
        return write_graph(tmp_path, x, adj)
    if request.param == "data":
        return of_data()
    if request.param == "changed":  # the last two nodes, and all their edges, come later
        fewer = Adjacency.from_edge_index(both_ways([(0, 1), (1, 2), (2, 0), (0, 4)]), 6)
        added, removed = torch.tensor([[2, 6], [3, 5]]), torch.tensor([[4], [0]])
        return TensorGraph(x[:6], fewer).with_edges(added, removed, x[6:])
    return of_stores(request.param)


def assert_is_the_graph(source: GraphSource, x: Tensor, pairs: Pairs) -> None:
    n = x.size(0)
    around: list[list[int]] = [[] for _ in range(n)]
    for u, v in pairs:
        around[u].append(v)
        around[v].append(u)
    assert (source.num_nodes, source.num_edges) == (n, 2 * len(pairs))
    for nodes in ([], [2], [3, 0, 2], [n - 1, 1, n - 2, 5], list(range(n))):
        index = torch.tensor(nodes, dtype=torch.int64)
        count, col = source.neighbors(index)
        assert count.tolist() == [len(around[node]) for node in nodes]
        assert col.tolist() == [other for node in nodes for other in sorted(around[node])]
        assert source.degree(index).tolist() == count.tolist()
        assert torch.equal(source.features(index), x[index])


def test_every_source_tells_the_same(source: GraphSource) -> None:
    assert_is_the_graph(source, graph()[0], PAIRS)


def test_the_whole_graph_can_be_read(source: GraphSource) -> None:
    (x, adj), (all_x, whole) = graph(), source.whole()
    assert torch.equal(all_x, x)
    for name in ("rowptr", "col", "degree"):
        assert torch.equal(getattr(whole, name).long(), getattr(adj, name).long())


def test_a_model_answers_from_every_source(source: GraphSource) -> None:
    torch.manual_seed(0)
    model, (x, adj) = EEGNN(2, 4, 3, 3), graph()
    expected, _ = model.predict(x, adj)
    for nodes in ([6], [0, 7, 0]):
        out, _ = model.predict(None, source, nodes=nodes)
        torch.testing.assert_close(out, expected[nodes])
    out, _ = model.predict(None, source)
    torch.testing.assert_close(out, expected)


def listed(pairs: Pairs) -> Tensor:
    return torch.tensor(pairs, dtype=torch.int64).view(-1, 2).T


def test_random_changes_are_those_of_the_edge_list() -> None:
    generator = torch.Generator().manual_seed(0)
    all_pairs = [(u, v) for u in range(12) for v in range(u + 1, 12)]
    for _ in range(30):
        kept, new = torch.rand(2, len(all_pairs), generator=generator) < 0.25
        before = [p for p, is_in in zip(all_pairs, kept, strict=True) if is_in and max(p) < 9]
        gone = before[::3]
        come = [p for p, is_in in zip(all_pairs, new, strict=True) if is_in and p not in gone]
        x = torch.rand(12, 2, generator=generator)
        base = TensorGraph(x[:9], Adjacency.from_edge_index(both_ways(before), 9))
        changed = base.with_edges(listed(come), listed(gone), x[9:])
        after = sorted((set(before) - set(gone)) | set(come))
        assert_is_the_graph(changed, x, after)
        # Changes of a changed graph: everything back.
        back = [p for p in come if p not in before or p in gone]
        assert_is_the_graph(changed.with_edges(listed(gone), listed(back)), x, before)


def test_a_new_node_is_asked_at_once() -> None:
    """Its answer, and those of its neighbours, are those of a graph that always had it."""
    torch.manual_seed(0)
    model, x = EEGNN(2, 4, 3, 5), torch.randn(41, 2)
    pairs: Pairs = [(i, i + 1) for i in range(39)]
    base = TensorGraph(x[:40], Adjacency.from_edge_index(both_ways(pairs), 40))
    source = base.with_edges(torch.tensor([[40, 40], [3, 30]]), x=x[40:])
    expected, exits = model.predict(x, both_ways([*pairs, (3, 40), (30, 40)]))
    nodes = [40, 3, 29]
    out, found = model.predict(None, source, nodes=nodes)
    torch.testing.assert_close(out, expected[nodes])
    assert torch.equal(found.layer, exits.layer[nodes])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"removed": torch.tensor([[0], [3]])},
            r"removed must name edges .* got \[0, 3\]",
        ),
        ({"added": torch.tensor([[0], [8]])}, r"added must hold nodes 0 … 7, got 0 … 8"),
        ({"added": torch.tensor([0, 1])}, r"must have shape \[2, E\]"),
    ],
)
def test_changes_that_make_no_sense_are_refused(change: dict[str, Tensor], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TensorGraph(*graph()).with_edges(**change)


def test_a_graph_without_features_has_no_file_of_them(tmp_path: Path) -> None:
    _, adj = graph()
    source = write_graph(tmp_path, None, adj)
    assert source.features(torch.tensor([0, 5])).shape == (2, 0)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["graph.col.npy", "graph.rowptr.npy"]
    model = EEGNN(0, 4, 3, 3)
    torch.testing.assert_close(
        model.predict(None, source, nodes=[2])[0], model.predict(None, adj)[0][[2]]
    )


@pytest.mark.parametrize(
    ("name", "array", "message"),
    [
        ("rowptr", np.arange(9), "does not end at 10"),
        ("rowptr", np.zeros((3, 3), dtype=np.int64), "has dtype int64 and 2 dimensions"),
        ("col", np.zeros(10), "has dtype float64"),
        ("x", np.zeros((3, 2), dtype=np.float32), "must have a row for each of 8 nodes, got 3"),
        ("x", np.array([{}]), "is damaged, empty, or no .npy file"),
    ],
)
def test_files_that_do_not_fit_are_refused(
    tmp_path: Path, name: str, array: Any, message: str
) -> None:
    write_graph(tmp_path, *graph())
    np.save(tmp_path / f"graph.{name}.npy", array)
    with pytest.raises(ValueError, match=message):
        MappedGraph(tmp_path)


def test_a_folder_without_a_graph_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"graph\.rowptr\.npy does not exist"):
        MappedGraph(tmp_path)


def test_stores_without_these_edges_are_refused() -> None:
    x, _ = graph()
    data = Data(x=x)
    with pytest.raises(ValueError, match="graph_store has no edges of edge_type=None"):
        StoreGraph(data, data)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"x": torch.zeros(N, 2)}, "x must be None"),
        ({"edge_attr": torch.zeros(3, 1)}, "must be None with a graph source"),
    ],
)
def test_a_source_comes_alone(arguments: dict[str, Tensor], message: str) -> None:
    x = arguments.pop("x", None)
    with pytest.raises(ValueError, match=message):
        EEGNN(2, 4, 3).predict(x, TensorGraph(*graph()), arguments.get("edge_attr"), nodes=[0])


def test_features_of_another_width_are_refused() -> None:
    with pytest.raises(ValueError, match=r"x must have shape \[0, 5\], got \[0, 2\]"):
        EEGNN(5, 4, 3).predict(None, TensorGraph(*graph()), nodes=[0])
