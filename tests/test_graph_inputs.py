from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from eegnn import Adjacency
from eegnn._graph_cache import adjacency_of
from tests.graphs import Pairs, both_ways, graphs, quick

GOOD = both_ways([(0, 1), (1, 2)])


@pytest.mark.parametrize(
    ("edge_index", "error", "message"),
    [
        (torch.tensor([[0, 3], [3, 0]]), ValueError, r"edge_index holds the node 3.*num_nodes=3"),
        (torch.tensor([[0, -1], [-1, 0]]), ValueError, r"edge_index holds -1"),
        (GOOD.float(), TypeError, r"edge_index must have dtype int64 or int32, got torch.float32"),
        (GOOD.bool(), TypeError, r"edge_index must have dtype"),
        (GOOD.short(), TypeError, r"edge_index must have dtype"),
        (GOOD.T, ValueError, r"edge_index must have shape \[2, E\], got \[4, 2\]"),
        (GOOD[0], ValueError, r"edge_index must have shape"),
        (GOOD.unsqueeze(0), ValueError, r"edge_index must have shape"),
        (torch.tensor(0), ValueError, r"edge_index must have shape"),
        (torch.eye(2).to_sparse(), ValueError, r"must have shape \[3, 3\] if it is sparse"),
        (torch.ones(3, 2).to_sparse_csr(), ValueError, r"must have shape \[3, 3\].*got \[3, 2\]"),
        (torch.ones(3, 3, 2).to_sparse(2), ValueError, r"one weight an edge.*\[9, 2\]"),
        (GOOD.numpy(), TypeError, r"edge_index must be a torch.Tensor, got ndarray"),
        ([[0, 1], [1, 0]], TypeError, r"edge_index must be a torch.Tensor, got list"),
        (None, TypeError, r"edge_index must be a torch.Tensor, got NoneType"),
    ],
)
@pytest.mark.parametrize("door", [Adjacency.from_edge_index, adjacency_of])
def test_a_bad_edge_index_is_refused(
    door: Callable[..., Adjacency], edge_index: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        door(edge_index, 3, None)


@quick
@given(graphs(), st.data())
def test_one_index_out_of_range_is_always_found(
    graph: tuple[int, Pairs], data: st.DataObject
) -> None:
    n, pairs = graph
    wrong = data.draw(st.one_of(st.integers(-(2**40), -1), st.integers(n, 2**40)))
    column = data.draw(st.permutations([wrong, data.draw(st.integers(0, max(n - 1, 0)))]))
    edge_index = torch.cat([both_ways(pairs), torch.tensor(column).view(2, 1)], dim=1)
    with pytest.raises(ValueError, match=f"edge_index holds .*{wrong}"):
        Adjacency.from_edge_index(edge_index, n)


def test_negative_indices_alone_are_blamed_on_the_edge_list() -> None:
    with pytest.raises(ValueError, match="edge_index holds -2"):
        Adjacency.from_edge_index(torch.tensor([[-2], [-2]]))


def test_a_batch_of_another_dtype_is_not_taken_for_one_seen_before() -> None:
    edge_index, batch = torch.tensor([[0, 1], [1, 0]]), torch.zeros(2, dtype=torch.int64)
    adjacency_of(edge_index, 2, batch)
    with pytest.raises(TypeError, match="batch must have dtype"):
        adjacency_of(edge_index, 2, batch.float())


@pytest.mark.parametrize(
    ("num_nodes", "error"),
    [(-1, ValueError), (3.0, TypeError), ("3", TypeError), (True, TypeError)],
)
def test_a_bad_number_of_nodes_is_refused(num_nodes: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="num_nodes must be"):
        Adjacency.from_edge_index(GOOD, num_nodes)


@pytest.mark.parametrize(
    ("batch", "error", "message"),
    [
        (torch.tensor([0, 0]), ValueError, r"batch must have shape \[3\], got \[2\]"),
        (torch.zeros(4).long(), ValueError, r"batch must have shape \[3\], got \[4\]"),
        (torch.zeros(3, 1).long(), ValueError, r"batch must have shape \[3\], got \[3, 1\]"),
        (torch.zeros(3), TypeError, r"batch must have dtype int64, got torch.float32"),
        (torch.zeros(3).bool(), TypeError, r"batch must have dtype int64, got torch.bool"),
        (torch.tensor([1, 0, 0]), ValueError, r"batch must be non-negative and ascending"),
        (torch.tensor([-1, 0, 0]), ValueError, r"batch must be non-negative and ascending"),
        ([0, 0, 0], TypeError, r"batch must be a torch.Tensor, got list"),
        (np.zeros(3, dtype=np.int64), TypeError, r"batch must be a torch.Tensor, got ndarray"),
        (
            torch.tensor([0, 0, 1]),
            ValueError,
            r"edge_index joins node 1 of graph 0 with node 2 of graph 1",
        ),
    ],
)
@pytest.mark.parametrize("door", [Adjacency.from_edge_index, adjacency_of])
def test_a_bad_batch_is_refused(
    door: Callable[..., Adjacency], batch: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        door(GOOD, 3, batch)


def test_an_edge_beyond_the_batch_is_refused() -> None:
    with pytest.raises(ValueError, match="edge_index holds the node 2, but with num_nodes=2"):
        Adjacency.from_edge_index(GOOD, batch=torch.tensor([0, 0]))
