from __future__ import annotations

import pytest
import torch

from eegnn.bench.footprint import LiveBytes, compare, stand_in, step_bytes
from eegnn.train.start import configure
from tests.train.problems import graph_problem, node_problem, small_config


def test_tensors_count_while_they_exist() -> None:
    kept = torch.zeros(1000)
    with LiveBytes() as live:
        made = kept + 1  # 4,000 bytes each
        assert live.now == 8_000
        view = made[:10]  # the same memory
        assert live.now == 8_000
        twice = 2 * made
        assert live.now == live.peak == 12_000
        del twice
        assert live.now == 8_000
        made.add_(1)
        del made
        assert live.now == 8_000
        del view
        assert live.now == 4_000
    assert live.peak == 12_000


def test_what_autograd_keeps_counts() -> None:
    x = torch.zeros(1000, requires_grad=True)
    with LiveBytes() as live:
        y = x.exp().exp()  # each keeps its result
        assert live.now == 12_000
        y.sum().backward()
        del y
    assert live.now == 8_000  # x and its gradient


def test_a_deeper_model_needs_more_unless_it_computes_again() -> None:
    problem = node_problem(400)
    shallow, deep = (step_bytes(small_config(num_layers=n), problem)[0] for n in (5, 25))
    assert deep > 3 * shallow
    options = {"recompute": True}
    again = step_bytes(small_config(num_layers=25, options=options), problem)[0]
    assert again < 0.6 * deep


def test_the_data_is_counted_once() -> None:
    problem = graph_problem(30)
    _, data = step_bytes(small_config(), problem)
    nodes = sum(int(graph.num_nodes or 0) for graph in problem.graphs)
    edges = sum(graph.num_edges for graph in problem.graphs)
    features, labels, degree, batch = 8 * nodes, 8 * 30, 8 * nodes, 8 * nodes
    structure, source = 4 * (nodes + 1 + edges), 8 * edges
    assert data == features + labels + degree + batch + structure + source


@pytest.mark.parametrize(
    ("dataset", "graphs", "nodes", "edges", "features", "edge_dim"),
    [
        ("cora", 1, 2_708, 10_556, 1_433, None),
        ("photo", 1, 7_650, 2 * 119_081, 745, None),
        ("peptides-func", 200, 151, 306, 194, 13),
        ("pascalvoc-sp", 50, 479, 2_710, 14, 2),
        ("ogbg-molhiv", 128, 26, 54, 174, 13),
        ("enzymes", 32, 33, 128, 21, None),
    ],
)
def test_a_data_set_is_stood_in_for_by_its_size(
    dataset: str, graphs: int, nodes: int, edges: int, features: int, edge_dim: int | None
) -> None:
    problem = stand_in(configure(dataset, "eegnn", None, {}))
    assert len(problem.graphs) == graphs
    assert {graph.num_nodes for graph in problem.graphs} == {nodes}
    assert problem.graphs[0].num_edges == edges
    assert not problem.graphs[0].has_self_loops()
    assert problem.graphs[0].is_undirected()
    assert len(problem.graphs[0].edge_index.unique(dim=1).T) == edges
    assert (problem.in_channels, problem.edge_dim) == (features, edge_dim)


def test_a_row_for_each_model() -> None:
    rows = compare(["texas"])
    assert [row.model for row in rows] == ["SAS-GNN", "EEGNN"]
    for row in rows:
        assert row.width == 64
        assert row.nodes == 183
        assert row.peak[0] >= row.peak[1] > row.data > 183 * 1_703 * 4
        assert [line for _, line, _, _ in row.points()] == ["plain", "recompute"]
