"""Parts of a graph, and graphs in a batch."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from eegnn import Adjacency
from eegnn.graph import Norm
from eegnn.subgraph import neighborhood, select_graphs, select_nodes
from tests.graphs import NORMS, TRIANGLE_AND_TAIL, Pairs, both_ways, dense, features, graphs, quick


@quick
@given(graphs(), st.sampled_from(NORMS), st.data())
def test_a_selection_is_a_block_of_the_normalised_matrix(
    graph: tuple[int, Pairs], norm: Norm, data: st.DataObject
) -> None:
    n, pairs = graph
    keep = data.draw(st.lists(st.booleans(), min_size=n, max_size=n))
    mask = torch.tensor(keep, dtype=torch.bool)
    adj = Adjacency.from_edge_index(both_ways(pairs), n)
    part = select_nodes(adj, mask)
    index = [i for i in range(n) if keep[i]]
    assert part.nodes is not None
    assert part.nodes.tolist() == index
    assert torch.equal(part.degree, adj.degree[mask])
    block = dense(n, pairs, norm)[np.ix_(index, index)]
    x = features(len(index))
    np.testing.assert_allclose(
        part.propagate(torch.from_numpy(x), norm).numpy(), block @ x, rtol=1e-13, atol=1e-14
    )


@quick
@given(graphs(), st.sampled_from(NORMS), st.booleans(), st.data())
def test_around_some_nodes_propagation_is_right_at_these(
    graph: tuple[int, Pairs], norm: Norm, warm: bool, data: st.DataObject
) -> None:
    n, pairs = graph
    rows = data.draw(st.permutations(range(n)))[: data.draw(st.integers(0, n))]
    adj = Adjacency.from_edge_index(both_ways(pairs), n)
    x = torch.from_numpy(features(n))
    whole = adj.propagate(x, norm) if warm else None  # then its values are at hand
    part, order = neighborhood(adj, torch.tensor(rows, dtype=torch.int64))
    neighbours = {v for u, v in both_ways(pairs).T.tolist() if u in rows} - set(rows)
    assert part.num_targets == len(rows)
    assert order.tolist() == [*rows, *sorted(neighbours)]
    assert part.nodes is not None
    assert torch.equal(part.nodes, order)
    assert torch.equal(part.degree, adj.degree[order])
    out = part.propagate(x[order], norm)
    whole = adj.propagate(x, norm) if whole is None else whole
    torch.testing.assert_close(out[: part.num_targets], whole[order][: part.num_targets])
    assert not out[part.num_targets :].any()
    again, inner_order = neighborhood(part, torch.arange(part.num_targets).flip(0))
    assert again.nodes is not None
    assert torch.equal(again.nodes, order[inner_order])
    torch.testing.assert_close(
        again.propagate(x[again.nodes], norm)[: part.num_targets], out[: part.num_targets].flip(0)
    )


def test_nested_selections_name_nodes_of_the_first_graph() -> None:
    adj = Adjacency.from_edge_index(both_ways([(0, 1), (1, 3), (3, 4)]), 6)
    assert adj.nodes is None
    once = select_nodes(adj, torch.tensor([False, True, True, True, True, False]))
    twice = select_nodes(once, torch.tensor([True, False, True, False]))
    assert twice.nodes is not None
    assert twice.nodes.tolist() == [1, 3]
    assert twice.degree.tolist() == [2, 2]
    assert twice.edge_index.tolist() == [[1, 0], [0, 1]]


def test_selected_graphs_are_numbered_anew() -> None:
    batch = torch.tensor([0, 0, 1, 2, 2, 2])
    pairs: Pairs = [(0, 1), (3, 4), (4, 5)]
    adj = Adjacency.from_edge_index(both_ways(pairs), 6, batch)
    part, rows = select_graphs(adj, torch.tensor([True, False, True]))
    assert part.num_graphs == 2
    assert part.batch is not None
    assert part.batch.tolist() == [0, 0, 1, 1, 1]
    assert part.nodes is not None
    assert part.nodes.tolist() == rows.tolist() == [0, 1, 3, 4, 5]
    x = features(5)
    whole = dense(5, [(0, 1), (2, 3), (3, 4)], "sym") @ x
    np.testing.assert_allclose(part.propagate(torch.from_numpy(x)).numpy(), whole, rtol=1e-13)
    last, _ = select_graphs(part, torch.tensor([False, True]))
    assert last.nodes is not None
    assert last.nodes.tolist() == [3, 4, 5]
    assert last.num_graphs == 1
    assert adj.num_graphs == 3  # the original is as it was


@quick
@given(st.lists(graphs(), min_size=1, max_size=5), st.data(), st.sampled_from(NORMS))
def test_selected_graphs_propagate_as_they_would_alone(
    several: list[tuple[int, Pairs]], data: st.DataObject, norm: Norm
) -> None:
    mask = data.draw(st.lists(st.booleans(), min_size=len(several), max_size=len(several)))
    first = 0
    pairs: Pairs = []
    batch: list[int] = []
    rows: list[int] = []
    blocks = []
    for g, ((n, own), kept) in enumerate(zip(several, mask, strict=True)):
        pairs += [(first + u, first + v) for u, v in own]
        batch += [g] * n
        if kept:
            rows += range(first, first + n)
            blocks.append(dense(n, own, norm))
        first += n
    graph = torch.tensor(batch, dtype=torch.int64)
    adj = Adjacency.from_edge_index(both_ways(pairs), first, graph, len(several))
    if data.draw(st.booleans()):  # what is known before is handed on
        adj.propagate(torch.zeros(first, 1, dtype=torch.float64), norm)
    part, found = select_graphs(adj, torch.tensor(mask))
    assert found.tolist() == rows
    assert part.ptr.tolist() == [0, *np.cumsum([len(block) for block in blocks])]
    x = features(len(rows))
    wanted = np.zeros((len(rows), len(rows)))
    for block, start in zip(blocks, part.ptr.tolist(), strict=False):
        wanted[start : start + len(block), start : start + len(block)] = block
    out = part.propagate(torch.from_numpy(x), norm).numpy()
    np.testing.assert_allclose(out, wanted @ x, rtol=1e-13, atol=1e-14)


def test_selecting_no_graph_leaves_nothing() -> None:
    adj = Adjacency.from_edge_index(both_ways([(0, 1)]), 2, torch.tensor([0, 0]))
    none, _ = select_graphs(adj, torch.tensor([False]))
    assert (none.num_nodes, none.num_edges, none.num_graphs) == (0, 0, 0)


def test_select_graphs_needs_a_batch() -> None:
    with pytest.raises(ValueError, match="select_graphs needs an Adjacency with a batch"):
        select_graphs(Adjacency.from_edge_index(both_ways([(0, 1)])), torch.tensor([True]))


@pytest.mark.parametrize("norm", NORMS)
def test_a_batch_propagates_like_each_graph_alone(norm: Norm) -> None:
    parts: list[tuple[int, Pairs]] = [(3, [(0, 1), (1, 2)]), (2, []), (4, TRIANGLE_AND_TAIL)]
    pairs, batch, start = [], [], 0
    for g, (n, own) in enumerate(parts):
        pairs += [(u + start, v + start) for u, v in own]
        batch += [g] * n
        start += n
    adj = Adjacency.from_edge_index(both_ways(pairs), start, torch.tensor(batch))
    assert adj.num_graphs == 3
    x = torch.from_numpy(features(start))
    alone = [
        Adjacency.from_edge_index(both_ways(own), n).propagate(part, norm)
        for (n, own), part in zip(parts, x.split([n for n, _ in parts]), strict=True)
    ]
    torch.testing.assert_close(adj.propagate(x, norm), torch.cat(alone))


@pytest.mark.parametrize(("batch", "count"), [([], 0), ([0, 0], 1), ([0, 2], 3), ([1, 1], 2)])
def test_graphs_without_nodes_are_counted(batch: list[int], count: int) -> None:
    empty = torch.zeros(2, 0, dtype=torch.int64)
    adj = Adjacency.from_edge_index(empty, batch=torch.tensor(batch, dtype=torch.int64))
    assert adj.num_graphs == count
