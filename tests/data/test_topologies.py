from __future__ import annotations

from collections import Counter

import networkx as nx  # type: ignore[import-untyped]
import numpy as np
import pytest

from eegnn.data.topologies import TOPOLOGIES, Edges, distances

# The benchmark's table: nodes, degree and undirected edges, mean and standard deviation.
TABLE = {
    "line": [(75.60, 27.32), (2.37, 0.10), (90.10, 33.89)],
    "ladder": [(56.52, 13.82), (2.92, 0.02), (82.54, 20.72)],
    "grid": [(193.10, 93.10), (2.95, 0.12), (288.32, 145.29)],
    "tree": [(60.42, 17.17), (1.96, 0.01), (59.42, 17.17)],
    "caterpillar": [(34.71, 7.96), (1.94, 0.02), (33.71, 7.96)],
    "lobster": [(81.79, 25.46), (1.97, 0.01), (80.79, 25.46)],
}
TREES = ("tree", "caterpillar", "lobster")
NAMES = pytest.mark.parametrize("name", TOPOLOGIES)


def draw(name: str, diameter: int, seed: int = 0) -> Edges:
    return TOPOLOGIES[name](np.random.default_rng([seed, diameter]), diameter)


def as_networkx(edges: Edges) -> nx.Graph:
    return nx.Graph(edges.T.tolist())


@NAMES
@pytest.mark.parametrize("diameter", [4, 5, 8, 17, 28, 40])
def test_graphs_are_connected_and_simple_and_have_exactly_this_diameter(
    name: str, diameter: int
) -> None:
    for seed in range(3):
        edges = draw(name, diameter, seed)
        graph = as_networkx(edges)
        assert nx.diameter(graph) == diameter  # raises if not connected
        assert graph.number_of_edges() == edges.shape[1]  # none twice
        assert nx.number_of_selfloops(graph) == 0
        assert sorted(graph) == list(range(edges.max() + 1))


@NAMES
def test_the_generator_decides_the_graph(name: str) -> None:
    assert np.array_equal(draw(name, 20, seed=1), draw(name, 20, seed=1))
    if name != "ladder":
        assert not np.array_equal(draw(name, 20, seed=1), draw(name, 20, seed=2))


@NAMES
def test_sizes_are_those_of_the_published_table(name: str) -> None:
    repetitions = {"line": 10, "grid": 5}.get(name, 40)
    rows = []
    for diameter in range(17, 41):
        for seed in range(repetitions):
            edges = draw(name, diameter, seed)
            n = edges.max() + 1
            rows.append((n, 2 * edges.shape[1] / n, edges.shape[1]))
    sample = np.array(rows)
    for column, (mean, deviation) in zip(sample.T, TABLE[name], strict=True):
        assert column.mean() == pytest.approx(mean, rel=0.06)
        # Spreads of degrees have one digit in the table: 0.02 may be 0.015.
        assert column.std() == pytest.approx(deviation, rel=0.18, abs=0.006)


def test_degrees_of_all_nodes_have_the_published_spread() -> None:
    # 2.53 ± 1.19 in the table. Without the hubs of the trees the spread would be below 0.9.
    graphs = [draw(name, d, seed) for name in TOPOLOGIES for d in range(17, 41) for seed in (0, 1)]
    degrees = np.concatenate([np.bincount(edges.ravel()) for edges in graphs])
    assert degrees.mean() == pytest.approx(2.53, rel=0.03)
    assert degrees.std() == pytest.approx(1.19, rel=0.2)


def test_a_line_is_a_path_with_a_chord_at_some_nodes() -> None:
    for seed in range(10):
        edges = draw("line", 25, seed)
        n = edges.max() + 1
        pairs = {(int(a), int(b)) for a, b in edges.T}
        assert {(i, i + 1) for i in range(n - 1)} <= pairs
        chords = [pair for pair in pairs if pair[1] - pair[0] > 1]
        assert 0 < len(chords) < 0.45 * n
        assert max(Counter(end for _, end in chords).values()) == 1  # at most one for each node


def test_a_chord_joins_nodes_that_were_two_to_six_hops_apart() -> None:
    edges = draw("line", 25, seed=3)
    order = np.lexsort((-edges[0], edges[1]))  # as the path grew: first the path's own edge
    graph = nx.Graph()
    for a, b in edges[:, order].T.tolist():
        if b - a > 1:
            assert 2 <= nx.shortest_path_length(graph, a, b) <= 6
        graph.add_edge(a, b)


def test_a_ladder_is_a_ladder() -> None:
    assert nx.is_isomorphic(as_networkx(draw("ladder", 12)), nx.ladder_graph(12))


def test_a_grid_lacks_about_a_fifth_of_its_edges() -> None:
    for seed in range(5):
        graph = as_networkx(draw("grid", 30, seed))
        assert max(dict(graph.degree).values()) <= 4
        assert nx.is_bipartite(graph)
        assert 2.5 < 2 * graph.number_of_edges() / len(graph) < 3.3


@pytest.mark.parametrize("name", TREES)
def test_trees_are_trees(name: str) -> None:
    assert all(nx.is_tree(as_networkx(draw(name, 19, seed))) for seed in range(5))


def without_leaves(graph: nx.Graph) -> nx.Graph:
    return graph.subgraph([node for node, degree in graph.degree if degree > 1])


def is_path(graph: nx.Graph) -> bool:
    return nx.is_connected(graph) and max(dict(graph.degree).values()) <= 2


def test_a_caterpillar_without_leaves_is_a_path() -> None:
    assert all(is_path(without_leaves(as_networkx(draw("caterpillar", 21, s)))) for s in range(9))


def test_a_lobster_without_leaves_is_a_caterpillar() -> None:
    for seed in range(9):
        inner = without_leaves(as_networkx(draw("lobster", 21, seed)))
        assert not is_path(inner)
        assert is_path(without_leaves(inner))


def test_a_tree_has_hubs() -> None:
    # With p ∝ degree³ the rich get richer: far more than leaves spread evenly would give.
    largest = [max(dict(as_networkx(draw("tree", 30, s)).degree).values()) for s in range(20)]
    assert np.median(largest) >= 10


def test_distances_are_those_of_networkx() -> None:
    edges = draw("grid", 9)
    lengths = dict(nx.all_pairs_shortest_path_length(as_networkx(edges)))
    n = edges.max() + 1
    assert distances(edges).tolist() == [[lengths[a][b] for b in range(n)] for a in range(n)]
