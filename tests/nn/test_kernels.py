"""The compiled kernels, against closed forms, NumPy in double precision, and `Adjacency`."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
import pytest
import torch

from eegnn import Adjacency
from tests.graphs import both_ways

numba = pytest.importorskip("numba")
kernels: Any = pytest.importorskip("eegnn.nn.kernels")

RNG = np.random.default_rng(0)


def random_edge_index(n: int, pairs: int, seed: int = 0) -> torch.Tensor:
    drawn = np.random.default_rng(seed).integers(0, n, (pairs, 2)).tolist()
    return both_ways(sorted({(min(u, v), max(u, v)) for u, v in drawn if u != v}))


def each(function: Any, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Call an inlined function on each number."""

    def loop(x: Any, out: Any) -> None:
        for i in range(x.size):
            out[i] = function(x[i])

    given = x.astype(np.float32)
    out = np.empty_like(given)
    numba.njit(loop)(given, out)
    return out.astype(np.float64)


def relative(found: Any, truth: Any) -> float:
    return float(np.max(np.abs(found - truth) / np.maximum(np.abs(truth), 1e-38)))


def floats(low: float, high: float, count: int = 20_001) -> np.ndarray[Any, Any]:
    return np.linspace(low, high, count).astype(np.float32).astype(np.float64)


def test_powers_of_two_are_as_exact_as_stated() -> None:
    x = floats(-100, 100)
    assert relative(each(kernels._exp2, x), np.exp2(x)) < 3e-7
    assert each(kernels._exp2, np.array([0.0, 1.0, -3.0])).tolist() == [1.0, 2.0, 0.125]


def test_powers_of_two_end_where_floats_do() -> None:
    ends = each(kernels._exp2, np.array([-1e6, -np.inf, 1e6, np.inf]))
    assert ends.tolist() == [2.0**-126] * 2 + [2.0**126] * 2


def test_logarithms_are_as_exact_as_stated() -> None:
    x = floats(0, 1)
    assert relative(each(kernels._log1p, x), np.log1p(x)) < 3e-7
    small = floats(1e-30, 1e-3)
    assert relative(each(kernels._log1p, small), np.log1p(small)) < 3e-7


def test_softplus_is_exact_on_both_sides() -> None:
    x = floats(-5, 80)
    assert relative(each(kernels._softplus, x), np.logaddexp(0, x)) < 6e-7
    far = floats(-80, -5)  # a float this large is only so exact, and it is an exponent
    error = np.abs(each(kernels._softplus, far) / np.logaddexp(0, far) - 1)
    assert np.all(error < np.abs(far) * 2**-23)


def test_the_activation_is_half_of_relu_of_tanh() -> None:
    z = floats(-6, 6)
    y = (-2 / np.log(2) * z).astype(np.float32).astype(np.float64)
    truth = np.maximum(np.tanh(-y * np.log(2) / 2), 0) / 2
    assert np.max(np.abs(each(kernels._half_relu_tanh, y) - truth)) < 2e-7


@pytest.mark.parametrize("name", ["_exp2", "_softplus", "_half_relu_tanh"])
def test_what_is_no_number_stays_none(name: str) -> None:
    assert np.isnan(each(getattr(kernels, name), np.array([np.nan]))).all()


def array(*shape: int, positive: bool = False) -> np.ndarray[Any, Any]:
    draw = RNG.uniform(0.1, 1, shape) if positive else RNG.normal(size=shape)
    return draw.astype(np.float32)


def delta(inner: Any, around: Any) -> Any:
    z = -(np.maximum(inner.astype(np.float64), 0) - around) * np.log(2) / 2
    return np.maximum(np.tanh(z), 0)


def test_a_step_of_all_nodes() -> None:
    h, inner, around, tau = array(9, 5), array(9, 5), array(9, 5), array(9, positive=True)
    truth = h + tau[:, None] * delta(inner, around)
    kernels.advance(h.size, h, inner, around, tau)
    np.testing.assert_allclose(h, truth, atol=1e-6)


def test_a_step_of_some_nodes_is_written_where_neighbours_read() -> None:
    names, scaled, noted = np.array([7, 0, 3]), array(9, 5), array(9)
    before, noted_before = scaled.copy(), noted.copy()
    h, inner, around = array(3, 5), array(3, 5), array(3, 5)
    scale, tau = array(3, positive=True), array(3, positive=True)
    truth = h + tau[:, None] * delta(inner, scale[:, None] * around)
    kernels.advance_nodes(h.size, names, h, inner, around, scale, tau, 2, noted, scaled)
    np.testing.assert_allclose(h, truth, atol=1e-6)
    np.testing.assert_allclose(scaled[names], scale[:, None] * truth, atol=1e-6)
    np.testing.assert_array_equal(noted[names[:2]], tau[:2])
    others = [1, 2, 4, 5, 6, 8]
    np.testing.assert_array_equal(scaled[others], before[others])
    np.testing.assert_array_equal(noted[[3, *others]], noted_before[[3, *others]])


def test_a_step_of_graphs_is_also_pooled() -> None:
    names, ptr, noted = np.array([4, 1, 2]), np.array([0, 2, 2, 6]), array(6)
    scale, tau, pooled = array(6, positive=True), array(3, positive=True), array(3, 5)
    h, inner, around = array(6, 5), array(6, 5), array(6, 5)
    scaled = scale[:, None] * h
    own = inner * scale[:, None]  # a product with scaled states
    wide = np.repeat(tau, np.diff(ptr))[:, None]
    truth = h + wide * delta(inner, scale[:, None] * around)
    kernels.advance_graphs(h.size, names, ptr, scaled, own, around, scale, tau, noted, pooled)
    np.testing.assert_allclose(scaled, scale[:, None] * truth, atol=1e-6)
    sums = [truth[0:2].sum(0), np.zeros(5), truth[2:6].sum(0)]
    np.testing.assert_allclose(pooled, sums, atol=1e-5)
    np.testing.assert_array_equal(noted[names], tau)


def test_gradients_of_a_step_are_those_of_autograd() -> None:
    inner, around, grad = array(9, 5), array(9, 5), array(9, 5)
    tau, by_tau = array(9, positive=True), array(9)
    leaves = [
        torch.tensor(a, dtype=torch.float64, requires_grad=True) for a in (inner, around, tau)
    ]
    z = leaves[1] - leaves[0].relu()
    new = leaves[2].unsqueeze(-1) * z.tanh().relu()
    by = torch.autograd.grad(new, leaves, torch.from_numpy(grad).double())
    kernels.go_back(9, inner, around, tau, grad, by_tau)
    for found, truth in zip((-inner, around, by_tau), by, strict=True):
        np.testing.assert_allclose(found, truth.numpy(), atol=1e-6)


@pytest.fixture
def graph() -> Adjacency:
    return Adjacency.from_edge_index(random_edge_index(60, 150), 60)


def test_sums_over_neighbours(graph: Adjacency) -> None:
    value, board, total = array(60), np.zeros(60, np.float32), array(60)
    kernels.add_neighbours(
        60, np.arange(60), value, graph.rowptr.numpy(), graph.col.numpy(), board, total
    )
    truth = graph.propagate(torch.from_numpy(value).double().unsqueeze(-1), "sum").squeeze(-1)
    np.testing.assert_allclose(total, truth.numpy(), atol=1e-5)


def test_some_rows_of_a_structure(graph: Adjacency) -> None:
    rows = np.array([40, 3, 59, 0])
    rowptr, col = np.empty(5, np.int32), np.empty(graph.num_edges, np.int32)
    end = kernels.select_rows(graph.rowptr.numpy(), graph.col.numpy(), rows, rowptr, col)
    entries = np.split(graph.col.numpy(), graph.rowptr.numpy()[1:-1])
    assert end == rowptr[-1] == sum(entries[row].size for row in rows)
    for a, row in enumerate(rows):
        np.testing.assert_array_equal(col[rowptr[a] : rowptr[a + 1]], entries[row])


def test_some_graphs_of_a_batch() -> None:
    batch = torch.arange(12).repeat_interleave(5)
    edge_index = torch.cat([random_edge_index(5, 6, seed=g) + 5 * g for g in range(12)], dim=1)
    adj = Adjacency.from_edge_index(edge_index, 60, batch)
    keep = torch.tensor([g in (0, 4, 5, 11) for g in range(12)])
    truth, nodes = adj.select_graphs(keep)
    ptr, rows = np.empty(5, np.int32), np.empty(60, np.int64)
    rowptr, col = np.empty(61, np.int32), np.empty(adj.num_edges, np.int32)
    states, new_states = array(60, 3), array(60, 3)
    before = (adj.ptr.numpy(), adj.rowptr.numpy(), adj.col.numpy(), states)
    count, entries = kernels.select_graphs(
        keep.nonzero().view(-1).numpy(), *before, ptr, rowptr, col, new_states, rows
    )
    assert (count, entries) == (20, truth.num_edges)
    np.testing.assert_array_equal(ptr, truth.ptr.numpy())
    np.testing.assert_array_equal(rows[:count], nodes.numpy())
    np.testing.assert_array_equal(new_states[:count], states[nodes.numpy()])
    np.testing.assert_array_equal(rowptr[: count + 1], truth.rowptr.numpy())
    np.testing.assert_array_equal(col[:entries], truth.col.numpy())


def distances(adj: Adjacency, start: list[int]) -> list[int]:
    """Breadth-first search."""
    entries = np.split(adj.col.numpy(), adj.rowptr.numpy()[1:-1])
    found = dict.fromkeys(start, 0)
    queue = deque(start)
    while queue:
        node = queue.popleft()
        for other in entries[node].tolist():
            if other not in found:
                found[other] = found[node] + 1
                queue.append(other)
    return [found.get(node, 1000) for node in range(adj.num_nodes)]


@pytest.mark.parametrize("steps", [0, 1, 2, 5])
def test_what_is_within_reach(graph: Adjacency, steps: int) -> None:
    inside = np.zeros(60, np.bool_)
    inside[[7, 30]] = True
    kernels.reach(graph.rowptr.numpy(), graph.col.numpy(), np.arange(60), inside, steps)
    assert inside.tolist() == [d <= steps for d in distances(graph, [7, 30])]


def test_both_ways_are_kept_apart_on_disk() -> None:
    for name in ("advance", "advance_nodes", "advance_graphs", "add_neighbours", "decide"):
        kernel = getattr(kernels, name)
        one, other = (way.py_func.__qualname__ for way in (kernel.serial, kernel.parallel))
        assert one != other  # that is what Numba files them under


def test_several_threads_compute_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "PARALLEL_SIZE", 0)
    h, inner, around, tau = array(999, 7), array(999, 7), array(999, 7), array(999, positive=True)
    alone = h.copy()
    kernels.advance.serial(alone, inner, around, tau)
    threads = torch.get_num_threads()
    before = numba.get_num_threads()
    try:
        torch.set_num_threads(2)
        kernels.advance(h.size, h, inner, around, tau)
    finally:
        torch.set_num_threads(threads)
    np.testing.assert_array_equal(h, alone)
    assert numba.get_num_threads() == before
