from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from scipy.sparse import csr_array  # type: ignore[import-untyped]

from eegnn.graph import Adjacency
from eegnn.zoo import drew
from eegnn.zoo.drew import DRew, neighbourhoods
from tests.graphs import Matrix, Pairs, both_ways, dense, graphs
from tests.zoo.examples import adjacency, array, batch_norm, ready, states

few = settings(deadline=None, max_examples=10)

PATH: Pairs = [(i, i + 1) for i in range(6)]


def distances(n: int, pairs: Pairs) -> Matrix:
    """Floyd and Warshall."""
    d = np.where(dense(n, pairs) > 0, 1.0, np.inf)
    np.fill_diagonal(d, 0)
    for k in range(n):
        d = np.minimum(d, d[:, k : k + 1] + d[k : k + 1])
    return d


def by_hand(model: DRew, h: Matrix, n: int, pairs: Pairs) -> Matrix:
    d, past = distances(n, pairs), [h]
    for layer, block in enumerate(model.layers):
        total = np.zeros_like(h)
        for k in range(1, min(layer + 1, model.num_hops) + 1):
            delay = 0 if model.nu is None else max(0, k - model.nu)
            weight = array(block.get_parameter("weight"))[k - 1]
            apart = (d == k).astype(float)
            degree = np.maximum(apart.sum(axis=1), 1)
            message = apart / np.sqrt(np.outer(degree, degree)) @ past[layer - delay] @ weight
            if model.norm:
                norm = block.get_submodule(f"norms.{k - 1}.module")
                message = np.maximum(batch_norm(norm, message), 0)
                message /= np.maximum(np.linalg.norm(message, axis=1, keepdims=True), 1e-12)
            total += message
        h = h + np.maximum(total, 0)
        past.append(h)
    return h


@pytest.mark.parametrize(
    ("nu", "max_hops", "norm"),
    [(1, None, False), (2, None, False), (None, None, False), (1, 2, False), (1, None, True)],
)
@given(graph=graphs(max_nodes=7))
@few
def test_layers_are_the_formula(
    nu: int | None, max_hops: int | None, norm: bool, graph: tuple[int, Pairs]
) -> None:
    n, pairs = graph
    model = ready(DRew(3, 4, 2, 4, nu=nu, max_hops=max_hops, norm=norm))
    x = states(n, 3)
    h = by_hand(model, array(model.encoder(x)), n, pairs)
    expected = array(model.decoder(torch.from_numpy(h)))
    np.testing.assert_allclose(array(model(x, adjacency(n, pairs))), expected, atol=1e-10)


@given(graph=graphs(max_nodes=12))
@few
def test_neighbourhoods_are_the_pairs_at_each_distance(graph: tuple[int, Pairs]) -> None:
    n, pairs = graph
    d = distances(n, pairs)
    for k, hop in enumerate(neighbourhoods(adjacency(n, pairs), 5), start=1):
        found = np.zeros((n, n))
        found[hop.row.numpy(), hop.col.numpy()] = 1
        np.testing.assert_array_equal(found, d == k)
        np.testing.assert_array_equal(hop.degree.numpy(), (d == k).sum(axis=1))


def test_neighbourhoods_are_found_once_for_a_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    adj = adjacency(7, PATH)
    first = neighbourhoods(adj, 4)
    monkeypatch.setattr(drew, "_beyond_neighbours", None)
    assert neighbourhoods(adj, 4) == first
    assert neighbourhoods(adj, 2) == first[:2]
    assert neighbourhoods(adj, 1) == [adj]


def test_a_farther_reach_is_found_anew() -> None:
    adj = adjacency(7, PATH)
    assert len(neighbourhoods(adj, 2)) == 2
    assert [hop.num_edges for hop in neighbourhoods(adj, 6)] == [12, 10, 8, 6, 4, 2]


def test_neighbourhoods_go_with_their_graph() -> None:
    adj = adjacency(7, PATH)
    farthest, graph = weakref.ref(neighbourhoods(adj, 3)[-1]), weakref.ref(adj)
    del adj
    gc.collect()
    assert graph() is None
    assert farthest() is None


def test_too_many_pairs_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drew, "MAX_PAIRS", 17)
    edges, x = both_ways(PATH), states(7, 3)
    assert DRew(3, 4, 2, 2).double()(x, edges).shape == (7, 2)
    with pytest.raises(ValueError, match="max_hops must be below 3 for this graph: more than 17"):
        DRew(3, 4, 2, 5, max_hops=3).double()(x, edges)


def test_a_dense_graph_is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    star = adjacency(9, [(0, i) for i in range(1, 9)])
    monkeypatch.setattr(drew, "MAX_PAIRS", 8 * 7)
    assert [hop.num_edges for hop in neighbourhoods(star, 2)] == [16, 56]
    monkeypatch.setattr(drew, "MAX_PAIRS", 8 * 7 - 1)
    monkeypatch.setattr(drew, "identity", None)
    with pytest.raises(ValueError, match="max_hops must be below 3"):
        neighbourhoods(star, 3)


@given(graph=graphs(max_nodes=9))
@few
def test_what_is_refused_at_once_would_be_refused_later(graph: tuple[int, Pairs]) -> None:
    n, pairs = graph
    adj, d = adjacency(n, pairs), distances(n, pairs)
    matrix = csr_array(dense(n, pairs))
    for far in range(2, 6):
        assert drew._fewest_pairs(adj, matrix, far) <= ((d >= 2) & (d <= far)).sum()


def reach(nu: int | None, num_layers: int) -> int:
    """How far news gets: k hops at once from a layer that was s(k) layers younger."""
    far = [0]
    for layer in range(num_layers):
        hops = range(1, layer + 2)
        far.append(max(k + far[layer - (0 if nu is None else max(0, k - nu))] for k in hops))
    return far[-1]


@pytest.mark.parametrize(("nu", "known"), [(1, 4), (2, 7), (None, 10)])
def test_news_gets_as_far_as_the_delay_allows(nu: int | None, known: int) -> None:
    assert reach(nu, 4) == known  # 1 + 1 + 1 + 1, 1 + 2 + 2 + 2, 1 + 2 + 3 + 4
    model = ready(DRew(3, 8, 2, 4, nu=nu))
    x, adj = states(13, 3), adjacency(13, [(i, i + 1) for i in range(12)])
    other = x.clone()
    other[0] += 1
    for limit in range(1, 5):
        out, changed = (model.predict(y, adj, max_layers=limit)[0] for y in (x, other))
        moved = (out != changed).any(dim=1).nonzero()
        assert moved.max() == reach(nu, limit)


def test_a_graph_of_a_batch_is_as_it_is_alone() -> None:
    batch = torch.tensor([0, 0, 0, 2, 2, 2])
    pairs: Pairs = [(0, 1), (1, 2), (3, 4), (4, 5)]
    hop = neighbourhoods(Adjacency.from_edge_index(both_ways(pairs), 6, batch), 2)[1]
    assert hop.edge_index.tolist() == [[2, 0, 5, 3], [0, 2, 3, 5]]
