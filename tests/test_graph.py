from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from hypothesis import given
from torch import Tensor
from torch_geometric.utils import to_undirected

from eegnn import Adjacency
from tests.graphs import TRIANGLE_AND_TAIL, Pairs, both_ways, dense, features, graphs, quick


def test_self_loops_are_removed_and_duplicates_merged() -> None:
    messy = torch.tensor([[0, 1, 1, 0, 2, 2, 1], [1, 0, 0, 1, 2, 1, 2]])
    adj = Adjacency.from_edge_index(messy, 4)
    assert adj.num_edges == 4
    assert adj.degree.tolist() == [1, 2, 1, 0]
    x = torch.from_numpy(features(4))
    np.testing.assert_allclose(
        adj.propagate(x, "sum").numpy(), dense(4, [(0, 1), (1, 2)]) @ x.numpy(), rtol=1e-14
    )


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_indices_are_stored_as_int32(dtype: torch.dtype) -> None:
    adj = Adjacency.from_edge_index(both_ways(TRIANGLE_AND_TAIL, dtype))
    assert adj.rowptr.dtype == adj.col.dtype == torch.int32
    assert adj.degree.dtype == torch.int64
    assert adj.rowptr.tolist() == [0, 2, 4, 7, 8]
    assert adj.col.tolist() == [1, 2, 0, 2, 0, 1, 3, 2]


def test_int32_input_with_a_batch_is_accepted() -> None:
    edge_index = both_ways([(0, 1), (2, 3)], torch.int32)
    adj = Adjacency.from_edge_index(edge_index, batch=torch.tensor([0, 0, 1, 1], dtype=torch.int32))
    assert adj.num_graphs == 2
    assert adj.batch is not None
    assert adj.batch.dtype == torch.int64


def test_a_directed_list_is_symmetrised_with_one_warning_that_points_here() -> None:
    directed = torch.tensor(TRIANGLE_AND_TAIL).T
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        adj = Adjacency.from_edge_index(directed)
    assert [w.category for w in caught] == [UserWarning]
    assert "edge_index is directed" in str(caught[0].message)
    assert caught[0].filename == __file__
    same = Adjacency.from_edge_index(to_undirected(directed))
    assert torch.equal(adj.rowptr, same.rowptr)
    assert torch.equal(adj.col, same.col)
    assert torch.equal(adj.degree, same.degree)


@quick
@given(graphs())
def test_an_undirected_list_gives_no_warning(graph: tuple[int, Pairs]) -> None:
    n, pairs = graph
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        adj = Adjacency.from_edge_index(both_ways(pairs), n)
    assert not adj.is_directed


def test_a_directed_list_of_self_loops_is_an_undirected_graph_without_edges() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        adj = Adjacency.from_edge_index(torch.tensor([[0, 1], [0, 1]]))
    assert (adj.num_nodes, adj.num_edges) == (2, 0)


def test_the_number_of_nodes_is_inferred() -> None:
    edge_index = both_ways([(0, 2)])
    assert Adjacency.from_edge_index(edge_index).num_nodes == 3
    assert Adjacency.from_edge_index(edge_index, batch=torch.zeros(5).long()).num_nodes == 5
    assert Adjacency.from_edge_index(torch.zeros(2, 0).long()).num_nodes == 0


@quick
@given(graphs())
def test_edge_index_makes_the_round_trip(graph: tuple[int, Pairs]) -> None:
    n, pairs = graph
    adj = Adjacency.from_edge_index(both_ways(pairs), n)
    edge_index = adj.edge_index
    assert edge_index.dtype == torch.int64
    named = {(int(u), int(v)) for u, v in edge_index.T}
    assert named == set(pairs) | {(v, u) for u, v in pairs}
    assert edge_index.size(1) == adj.num_edges == 2 * len(pairs)
    again = Adjacency.from_edge_index(edge_index, n)
    assert torch.equal(again.rowptr, adj.rowptr)
    assert torch.equal(again.col, adj.col)


def test_later_changes_to_the_callers_tensors_stay_outside() -> None:
    edge_index, batch = both_ways([(0, 1), (2, 3)], torch.int32), torch.tensor([0, 0, 1, 1])
    adj = Adjacency.from_edge_index(edge_index, 4, batch)
    attr = torch.arange(4.0, dtype=torch.float64).unsqueeze(-1)
    before = adj.propagate(torch.eye(4), "sum")
    edge_sums = [1.0, 1.0, 2.0, 2.0]  # the two rows of each edge, averaged
    edge_index.fill_(0)
    batch.fill_(0)
    assert torch.equal(adj.propagate(torch.eye(4), "sum"), before)
    assert adj.incidence_sum(attr).view(-1).tolist() == edge_sums
    assert adj.batch is not None
    assert adj.batch.tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize(
    ("batch", "text"),
    [
        (None, "Adjacency(num_nodes=4, num_edges=4)"),
        (torch.tensor([0, 0, 1, 1]), "Adjacency(num_nodes=4, num_edges=4, num_graphs=2)"),
    ],
)
def test_repr_is_one_line(batch: Tensor | None, text: str) -> None:
    assert repr(Adjacency.from_edge_index(both_ways([(0, 1), (2, 3)]), 4, batch)) == text


def test_to_returns_an_equal_copy() -> None:
    batch = torch.tensor([0, 0, 1, 1])
    adj = Adjacency.from_edge_index(both_ways([(0, 1), (2, 3)]), 4, batch)
    copy = adj.to("cpu")
    assert repr(copy) == repr(adj)
    x, attr = torch.from_numpy(features(4)), torch.from_numpy(features(4, 2))
    assert torch.equal(copy.propagate(x), adj.propagate(x))
    assert torch.equal(copy.incidence_sum(attr), adj.incidence_sum(attr))
