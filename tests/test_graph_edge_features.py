from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from eegnn import Adjacency
from eegnn.subgraph import select_nodes
from tests.graphs import TRIANGLE_AND_TAIL, Matrix, Pairs, both_ways, features, quick


def incidence(n: int, columns: Pairs, attr: Matrix) -> Matrix:
    """B·E: rows of B are nodes, its columns undirected edges; E averages equal columns."""
    edges = sorted({(min(u, v), max(u, v)) for u, v in columns if u != v})
    b = np.zeros((n, len(edges)))
    e = np.zeros((len(edges), attr.shape[1]))
    for k, edge in enumerate(edges):
        b[edge[0], k] = b[edge[1], k] = 1.0
        named = [attr[c] for c, (u, v) in enumerate(columns) if (min(u, v), max(u, v)) == edge]
        e[k] = np.mean(named, axis=0)
    product: Matrix = b @ e
    return product


@pytest.mark.filterwarnings("ignore:edge_index is directed")
@pytest.mark.parametrize(
    "columns",
    [
        [(0, 1), (1, 2), (2, 3)],
        [(0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 2)],
        [(0, 1), (0, 1), (1, 0), (2, 3), (3, 2)],
        [(0, 1), (1, 1), (1, 0), (3, 3)],
        [(2, 2)],
        [],
    ],
    ids=["one way", "both ways", "duplicates", "self-loops", "only a self-loop", "no edges"],
)
def test_incidence_sum_is_the_product_with_the_incidence_matrix(columns: Pairs) -> None:
    attr = features(len(columns), 2)
    edge_index = torch.tensor(columns, dtype=torch.int64).view(-1, 2).T
    adj = Adjacency.from_edge_index(edge_index, 5)
    assert adj.num_edge_columns == len(columns)
    out = adj.incidence_sum(torch.from_numpy(attr))
    np.testing.assert_allclose(out.numpy(), incidence(5, columns, attr), rtol=1e-13, atol=1e-14)


@pytest.mark.filterwarnings("ignore:edge_index is directed")
@quick
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=12))
def test_incidence_sum_of_any_edge_list(columns: Pairs) -> None:
    attr = features(len(columns), 2)
    edge_index = torch.tensor(columns, dtype=torch.int64).view(-1, 2).T
    out = Adjacency.from_edge_index(edge_index, 5).incidence_sum(torch.from_numpy(attr))
    np.testing.assert_allclose(out.numpy(), incidence(5, columns, attr), rtol=1e-12, atol=1e-13)


def test_incidence_sum_passes_the_gradient() -> None:
    adj = Adjacency.from_edge_index(both_ways(TRIANGLE_AND_TAIL), 4)
    attr = torch.from_numpy(features(8, 2)).requires_grad_()
    assert torch.autograd.gradcheck(adj.incidence_sum, (attr,))


def test_a_selection_has_no_edge_features_of_its_own() -> None:
    adj = Adjacency.from_edge_index(both_ways(TRIANGLE_AND_TAIL), 4)
    part = select_nodes(adj, torch.tensor([True, True, False, True]))
    assert part.num_edge_columns is None
    with pytest.raises(ValueError, match="not to a selection"):
        part.incidence_sum(torch.ones(8, 1))
