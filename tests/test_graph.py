from __future__ import annotations

import gc
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch_geometric.utils import to_undirected

from eegnn import Adjacency
from eegnn.graph import Norm, adjacency_of

Pairs = list[tuple[int, int]]
Matrix = npt.NDArray[np.float64]

NORMS: tuple[Norm, ...] = ("sym", "mean", "sum")
TRIANGLE_AND_TAIL: Pairs = [(0, 1), (1, 2), (2, 0), (2, 3)]

quick = settings(deadline=None, max_examples=30)


@st.composite
def graphs(draw: st.DrawFn, max_nodes: int = 9) -> tuple[int, Pairs]:
    """A number of nodes and undirected edges, each named once as (smaller, larger)."""
    n = draw(st.integers(0, max_nodes))
    pairs = [(u, v) for u in range(n) for v in range(u + 1, n)]
    edges = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    return n, edges


def both_ways(pairs: Pairs, dtype: torch.dtype = torch.int64) -> Tensor:
    directed = [*pairs, *((v, u) for u, v in pairs)]
    return torch.tensor(directed, dtype=dtype).view(-1, 2).T.contiguous()


def dense(n: int, pairs: Pairs, norm: Norm = "sum") -> Matrix:
    """The matrix that `propagate` multiplies by, written entry by entry."""
    a = np.zeros((n, n))
    for u, v in pairs:
        a[u, v] = a[v, u] = 1.0
    degree = [int(sum(row)) for row in a]
    for u in range(n):
        for v in range(n):
            if a[u, v] and norm == "sym":
                a[u, v] = 1 / np.sqrt(degree[u] * degree[v])
            elif a[u, v] and norm == "mean":
                a[u, v] = 1 / degree[u]
    return a


def features(n: int, d: int = 3, seed: int = 0) -> Matrix:
    return np.random.default_rng(seed).standard_normal((n, d))


# propagation


@quick
@given(graphs(), st.sampled_from(NORMS), st.integers(0, 3))
def test_propagation_is_the_dense_product(
    graph: tuple[int, Pairs], norm: Norm, channels: int
) -> None:
    n, pairs = graph
    x = features(n, channels)
    adj = Adjacency.from_edge_index(both_ways(pairs), n)
    out = adj.propagate(torch.from_numpy(x), norm)
    assert out.shape == (n, channels)
    np.testing.assert_allclose(out.numpy(), dense(n, pairs, norm) @ x, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize(
    ("dtype", "rtol"), [(torch.float64, 1e-13), (torch.float32, 2e-6), (torch.bfloat16, 2e-2)]
)
def test_propagation_keeps_the_dtype(norm: Norm, dtype: torch.dtype, rtol: float) -> None:
    x = torch.from_numpy(features(6, 4)).to(dtype)
    adj = Adjacency.from_edge_index(both_ways(TRIANGLE_AND_TAIL), 6)
    out = adj.propagate(x, norm)
    assert out.dtype == dtype
    exact = dense(6, TRIANGLE_AND_TAIL, norm) @ x.double().numpy()
    np.testing.assert_allclose(out.double().numpy(), exact, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("n", [0, 1, 4])
def test_a_graph_without_edges_propagates_zeros(norm: Norm, n: int) -> None:
    adj = Adjacency.from_edge_index(torch.zeros(2, 0, dtype=torch.int64), n)
    assert (adj.num_nodes, adj.num_edges) == (n, 0)
    assert torch.equal(adj.propagate(torch.ones(n, 2), norm), torch.zeros(n, 2))


@pytest.mark.parametrize("norm", NORMS)
def test_isolated_nodes_receive_zero_and_not_nan(norm: Norm) -> None:
    adj = Adjacency.from_edge_index(both_ways([(0, 2)]), 4)
    out = adj.propagate(torch.ones(4, 1), norm)
    assert out.view(-1).tolist() == [1.0, 0.0, 1.0, 0.0]


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("pairs", [TRIANGLE_AND_TAIL, []])
def test_gradients_are_right_to_second_order(norm: Norm, pairs: Pairs) -> None:
    adj = Adjacency.from_edge_index(both_ways(pairs), 5)
    x = torch.from_numpy(features(5, 2)).requires_grad_()

    def curved(z: Tensor) -> Tensor:  # the second derivative of a linear map alone is zero
        return adj.propagate(z.sin(), norm)

    assert torch.autograd.gradcheck(curved, (x,))
    assert torch.autograd.gradgradcheck(curved, (x,))


def test_a_strided_gradient_is_propagated_back() -> None:
    adj = Adjacency.from_edge_index(both_ways(TRIANGLE_AND_TAIL), 4)
    x = torch.from_numpy(features(4, 2)).requires_grad_()
    adj.propagate(x, "mean").sum().backward()  # an expanded, stride-0 gradient
    assert x.grad is not None
    exact = dense(4, TRIANGLE_AND_TAIL, "mean").T @ np.ones((4, 2))
    np.testing.assert_allclose(x.grad.numpy(), exact, rtol=1e-13)


@quick
@given(graphs(), st.sampled_from(NORMS), st.data())
def test_chosen_rows_are_those_of_the_full_result(
    graph: tuple[int, Pairs], norm: Norm, data: st.DataObject
) -> None:
    n, pairs = graph
    chosen = data.draw(st.lists(st.integers(0, n - 1))) if n else []
    rows = torch.tensor(chosen, dtype=torch.int64)
    adj = Adjacency.from_edge_index(both_ways(pairs), n)
    x = torch.from_numpy(features(n))
    torch.testing.assert_close(adj.propagate(x, norm, rows), adj.propagate(x, norm)[rows])


def test_an_unknown_norm_is_refused() -> None:
    adj = Adjacency.from_edge_index(both_ways([(0, 1)]))
    with pytest.raises(ValueError, match=r"norm must be one of 'sym', 'mean', 'sum', got 'max'"):
        adj.propagate(torch.ones(2, 1), "max")  # type: ignore[arg-type]


@pytest.mark.parametrize("norm", NORMS)
def test_the_compiler_takes_propagation_whole(norm: Norm) -> None:
    torch.compiler.reset()
    adj = Adjacency.from_edge_index(both_ways(TRIANGLE_AND_TAIL), 4)

    def step(x: Tensor) -> Tensor:
        return adj.propagate(x.sin(), norm).cos()

    compiled: Callable[[Tensor], Tensor] = torch.compile(step, fullgraph=True, backend="aot_eager")
    plain = torch.from_numpy(features(4)).requires_grad_()
    fast = plain.detach().clone().requires_grad_()
    expected, out = step(plain), compiled(fast)
    torch.testing.assert_close(out, expected)
    expected.sum().backward()
    out.sum().backward()
    assert plain.grad is not None
    torch.testing.assert_close(fast.grad, plain.grad)


# the door


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
        Adjacency.from_edge_index(both_ways(pairs), n)


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


# edge features


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
    part = adj.select(torch.tensor([True, True, False, True]))
    assert part.num_edge_columns is None
    with pytest.raises(ValueError, match="not to a selection"):
        part.incidence_sum(torch.ones(8, 1))


# selections and batches


@quick
@given(graphs(), st.sampled_from(NORMS), st.data())
def test_a_selection_is_a_block_of_the_normalised_matrix(
    graph: tuple[int, Pairs], norm: Norm, data: st.DataObject
) -> None:
    n, pairs = graph
    keep = data.draw(st.lists(st.booleans(), min_size=n, max_size=n))
    mask = torch.tensor(keep, dtype=torch.bool)
    adj = Adjacency.from_edge_index(both_ways(pairs), n)
    part = adj.select(mask)
    index = [i for i in range(n) if keep[i]]
    assert part.nodes is not None
    assert part.nodes.tolist() == index
    assert torch.equal(part.degree, adj.degree[mask])
    block = dense(n, pairs, norm)[np.ix_(index, index)]
    x = features(len(index))
    np.testing.assert_allclose(
        part.propagate(torch.from_numpy(x), norm).numpy(), block @ x, rtol=1e-13, atol=1e-14
    )


def test_nested_selections_name_nodes_of_the_first_graph() -> None:
    adj = Adjacency.from_edge_index(both_ways([(0, 1), (1, 3), (3, 4)]), 6)
    assert adj.nodes is None
    once = adj.select(torch.tensor([False, True, True, True, True, False]))
    twice = once.select(torch.tensor([True, False, True, False]))
    assert twice.nodes is not None
    assert twice.nodes.tolist() == [1, 3]
    assert twice.degree.tolist() == [2, 2]
    assert twice.edge_index.tolist() == [[1, 0], [0, 1]]


def test_selected_graphs_are_numbered_anew() -> None:
    batch = torch.tensor([0, 0, 1, 2, 2, 2])
    pairs: Pairs = [(0, 1), (3, 4), (4, 5)]
    adj = Adjacency.from_edge_index(both_ways(pairs), 6, batch)
    part = adj.select_graphs(torch.tensor([True, False, True]))
    assert part.num_graphs == 2
    assert part.batch is not None
    assert part.batch.tolist() == [0, 0, 1, 1, 1]
    assert part.nodes is not None
    assert part.nodes.tolist() == [0, 1, 3, 4, 5]
    x = features(5)
    whole = dense(5, [(0, 1), (2, 3), (3, 4)], "sym") @ x
    np.testing.assert_allclose(part.propagate(torch.from_numpy(x)).numpy(), whole, rtol=1e-13)
    last = part.select_graphs(torch.tensor([False, True]))
    assert last.nodes is not None
    assert last.nodes.tolist() == [3, 4, 5]
    assert last.num_graphs == 1
    assert adj.num_graphs == 3  # the original is as it was


def test_selecting_no_graph_leaves_nothing() -> None:
    adj = Adjacency.from_edge_index(both_ways([(0, 1)]), 2, torch.tensor([0, 0]))
    none = adj.select_graphs(torch.tensor([False]))
    assert (none.num_nodes, none.num_edges, none.num_graphs) == (0, 0, 0)


def test_select_graphs_needs_a_batch() -> None:
    with pytest.raises(ValueError, match="select_graphs needs an Adjacency with a batch"):
        Adjacency.from_edge_index(both_ways([(0, 1)])).select_graphs(torch.tensor([True]))


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


# the memory of edge lists


def test_the_same_tensor_gives_the_same_adjacency() -> None:
    edge_index = both_ways([(0, 1)])
    assert adjacency_of(edge_index, 3, None) is adjacency_of(edge_index, 3, None)


def test_a_change_in_place_gives_a_new_adjacency() -> None:
    edge_index = both_ways([(0, 1)])
    first = adjacency_of(edge_index, 3, None)
    edge_index[edge_index == 1] = 2
    second = adjacency_of(edge_index, 3, None)
    assert second is not first
    assert second.degree.tolist() == [1, 0, 1]


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_another_batch_gives_a_new_adjacency(dtype: torch.dtype) -> None:
    edge_index, batch = both_ways([(0, 1)]), torch.tensor([0, 0, 0], dtype=dtype)
    plain = adjacency_of(edge_index, 3, None)
    single = adjacency_of(edge_index, 3, batch)
    assert plain.batch is None
    assert single.batch is not None
    assert adjacency_of(edge_index, 3, batch) is single
    assert adjacency_of(edge_index, 3, batch.clone()) is single
    batch[2] = 1
    assert adjacency_of(edge_index, 3, batch).num_graphs == 2
    assert adjacency_of(edge_index, 3, None).batch is None


def test_another_number_of_nodes_gives_a_new_adjacency() -> None:
    edge_index = both_ways([(0, 1)])
    assert adjacency_of(edge_index, 3, None).num_nodes == 3
    assert adjacency_of(edge_index, 4, None).num_nodes == 4
    assert adjacency_of(edge_index, None, None).num_nodes == 2


def test_remembering_does_not_keep_the_tensor_alive() -> None:
    edge_index = both_ways([(0, 1)])
    adjacency = weakref.ref(adjacency_of(edge_index, 2, None))
    tensor = weakref.ref(edge_index)
    del edge_index
    gc.collect()
    assert tensor() is None
    assert adjacency() is None


def test_inference_tensors_are_accepted_though_they_have_no_version() -> None:
    with torch.inference_mode():
        edge_index = both_ways([(0, 1)])
        assert adjacency_of(edge_index, 2, None).num_edges == 2
        edge_index.fill_(0)
        assert adjacency_of(edge_index, 2, None).num_edges == 0


# bad input

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
        (torch.eye(3).to_sparse(), TypeError, r"edge_index must be a dense.*sparse"),
        (torch.eye(2).long().to_sparse_csr(), TypeError, r"edge_index must be a dense.*sparse"),
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
