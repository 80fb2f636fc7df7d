"""The compiled kernels, against closed forms, NumPy in double precision, and `Adjacency`."""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Iterator
from pathlib import Path
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


WIDTHS = [5, 16, 33, 70]


@pytest.fixture
def graph() -> Adjacency:
    return Adjacency.from_edge_index(random_edge_index(60, 150), 60)


@pytest.fixture(params=[1, 2], ids=["one thread", "two threads"])
def threads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Whatever the size, so many threads compute."""
    monkeypatch.setattr(kernels, "PARALLEL_SIZE", 0)
    before, numba_before = torch.get_num_threads(), numba.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)
    assert numba.get_num_threads() == numba_before


def padded(states: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """With columns that nobody should read, to the next multiple of 16."""
    more = -states.shape[1] % 16
    return np.pad(states, ((0, 0), (0, more)), constant_values=np.nan)


def structure(adj: Adjacency, edge: np.ndarray[Any, Any]) -> Any:
    scale = adj.scale(torch.float32)
    arrays = (adj.rowptr, adj.col, scale, scale.reciprocal())
    return kernels.Structure(*(t.numpy() for t in arrays), edge)


def after_a_step(
    adj: Adjacency, h: Any, omega: Any, weight: Any, edge: Any, tau: Any
) -> np.ndarray[Any, Any]:
    """H + τ ReLU(tanh(ĀHW − ReLU(HΩ) + E)) in double precision, where kernels are given twice
    that over ln 2."""
    h64, omega64, weight64, edge64 = (
        torch.from_numpy(a).double() for a in (h, omega, weight, edge)
    )
    around = adj.propagate(h64, "sym") @ weight64 + (edge64 if edge64.numel() else 0)
    z = (around - (h64 @ omega64).relu()) * np.log(2) / 2
    return (h64 + torch.from_numpy(tau).double().unsqueeze(-1) * z.tanh().relu()).numpy()


def drawn(width: int, with_edges: bool) -> tuple[Any, Any, Any, Any, Any]:
    h, omega, weight = array(60, width), array(width, width), array(width, width)
    edge = array(60, width) if with_edges else np.empty((0, width), np.float32)
    return h, omega, weight, edge, array(60, positive=True)


def panels(*weights: Any) -> list[Any]:
    return [kernels.panels_of(torch.from_numpy(weight)) for weight in weights]


@pytest.mark.parametrize("with_edges", [False, True])
@pytest.mark.parametrize("width", WIDTHS)
def test_a_step_of_all_nodes(width: int, with_edges: bool, graph: Adjacency, threads: int) -> None:
    h, omega, weight, edge, tau = given = drawn(width, with_edges)
    truth = after_a_step(graph, *given)
    before, read = h.copy(), np.empty_like(padded(h))
    kernels.advance(1, h, read, structure(graph, edge), *panels(omega, weight), tau)
    np.testing.assert_allclose(h, truth, atol=2e-5)
    scale = graph.scale(torch.float32).numpy()[:, None]
    np.testing.assert_array_equal(read[:, :width], scale * before)


def test_a_step_of_the_first_nodes_alone(graph: Adjacency) -> None:
    h, omega, weight, edge, tau = given = drawn(16, False)
    truth, before = after_a_step(graph, *given), h.copy()
    read = np.empty_like(h)
    kernels.advance(1, h, read, structure(graph, edge), *panels(omega, weight), tau[:37])
    np.testing.assert_allclose(h[:37], truth[:37], atol=2e-5)
    np.testing.assert_array_equal(h[37:], before[37:])


def books(facts: Any, said: int, log_stay: Any = None) -> Any:
    """Of units who have not said anything yet."""
    count = len(facts)
    return kernels.Books(
        facts,
        facts[:, 1].copy(),
        np.zeros(count, np.bool_),
        np.zeros(count, np.float32) if log_stay is None else log_stay,
        np.zeros((count, said), np.float32),
        np.full(count, 99),
        array(count, positive=True),
    )


@pytest.mark.parametrize("facts", [3, 5, 20])
@pytest.mark.parametrize("width", WIDTHS)
def test_a_step_of_some_nodes(width: int, facts: int, graph: Adjacency, threads: int) -> None:
    h, omega, weight, edge, _ = drawn(width, True)
    known, heads, rows = books(array(60, facts), 2), array(width, facts), np.arange(3, 60, 2)
    old, others = known.facts.copy(), np.setdiff1d(np.arange(60), rows)
    truth = after_a_step(graph, h, omega, weight, edge, known.tau)
    scale = graph.scale(torch.float32).numpy()[:, None]
    read, write = padded(scale * h), padded(array(60, width))
    before = write.copy()
    kernels.step_nodes(
        1, rows, read, write, structure(graph, edge), *panels(omega, weight, heads), known
    )
    np.testing.assert_allclose(write[rows, :width], (scale * truth)[rows], atol=2e-5)
    np.testing.assert_array_equal(write[others], before[others])
    np.testing.assert_allclose(known.facts[rows], (truth @ heads)[rows], atol=2e-4)
    np.testing.assert_array_equal(known.facts[others], old[others])
    np.testing.assert_array_equal(known.board[rows], known.facts[rows, 1])


@pytest.mark.parametrize("width", WIDTHS)
def test_a_step_of_some_graphs(width: int, threads: int) -> None:
    sizes = torch.tensor([5, 0, 40, 1, 14])
    batch = torch.repeat_interleave(torch.arange(5), sizes)
    edge_index = torch.cat([random_edge_index(40, 99) + 5, random_edge_index(14, 30) + 46], dim=1)
    adj = Adjacency.from_edge_index(edge_index, 60, batch)
    h, omega, weight, edge, _ = drawn(width, False)
    known, heads, some = books(array(5, 4), 1), array(width, 4), np.array([1, 2, 3])
    share, pooled, old = array(5, positive=True), array(5, width), known.facts.copy()
    ptr = np.concatenate([[0], np.cumsum(sizes.numpy())])
    truth = after_a_step(adj, h, omega, weight, edge, known.tau[batch.numpy()])
    scale = adj.scale(torch.float32).numpy()[:, None]
    read = padded(scale * h)
    write, boards = np.zeros_like(read), (read, structure(adj, edge))
    kernels.step_graphs(
        1, some, ptr, np.arange(60), read, write, boards[1], *panels(omega, weight, heads), known,
        pooled, share,
    )  # fmt: skip
    inside = slice(5, 46)
    np.testing.assert_allclose(write[inside, :width], (scale * truth)[inside], atol=2e-5)
    for g in some:
        sum_ = share[g] * truth[ptr[g] : ptr[g + 1]].sum(axis=0)
        np.testing.assert_allclose(pooled[g], sum_, atol=2e-4)
        np.testing.assert_allclose(known.facts[g], sum_ @ heads, atol=2e-3)
    np.testing.assert_array_equal(known.facts[[0, 4]], old[[0, 4]])


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


SHARES: dict[str, Any] = {
    "VALUES": lambda x: x,
    "LABELS": lambda x: np.concatenate([sigmoid(x), sigmoid(-x)], axis=1),
    "CLASSES": lambda x: np.exp(x) / np.exp(x).sum(axis=1, keepdims=True),
}


@pytest.mark.parametrize("rule", ["THRESHOLD", "ODDS", "STATED", "EVERYONE"])
@pytest.mark.parametrize("kind", SHARES)
@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize("freeze", [False, True])
def test_decisions(
    freeze: bool, sampled: bool, kind: str, rule: str, graph: Adjacency, threads: int
) -> None:
    leak, nu0, bias, limit, layer = 0.2, 0.4, 0.3, -1.5, 3
    log_stay, exit_bias = -array(60, positive=True), array(2)
    known = books(array(60, 5), 4 if kind == "LABELS" else 2, log_stay)
    known.answers[:] = array(*known.answers.shape)
    known.left[[4, 9]] = True
    units, stated = np.setdiff1d(np.arange(60), [0, 30]), np.arange(60) % 7
    start = kernels.Books(*(a.copy() for a in known))
    noted = np.full(60, 7, np.float32)
    one, keep = np.float32(-1), np.float32(np.log(1 - leak))
    manner = kernels.Manner(np.float32(bias), np.float32(nu0), True, sampled, keep, one, freeze)
    number = kernels.decide(
        1, units, layer, getattr(kernels, rule), np.float32(limit), stated, manner,
        structure(graph, np.empty((0, 1), np.float32)), exit_bias, getattr(kernels, kind), known,
        noted,
    )  # fmt: skip

    own, others, cold = start.facts[:, :3].T.astype(np.float64)
    mean = graph.propagate(torch.from_numpy(others).unsqueeze(-1), "mean").squeeze(-1).numpy()
    delta = own + mean + bias
    scaled = delta * (np.logaddexp(0, cold) + nu0)
    score = delta if sampled else scaled
    going = start.log_stay + np.log(1 - leak) - np.logaddexp(0, -score)
    leaves = {
        "THRESHOLD": going <= limit,
        "ODDS": score < 0,
        "STATED": stated <= layer,
        "EVERYONE": np.ones(60, np.bool_),
    }[rule]
    asked = np.isin(np.arange(60), units)
    goes = leaves & asked & ~start.left
    stays = ~leaves & asked & ~start.left
    assert number == goes.sum()
    assert rule == "EVERYONE" or 0 < number < units.size - 2
    np.testing.assert_array_equal(known.left, start.left | goes)
    np.testing.assert_array_equal(known.layer, np.where(goes, layer, 99))
    np.testing.assert_allclose(known.log_stay[stays], going[stays], atol=1e-5)
    here = np.exp(start.log_stay)
    weight = np.where(goes, here, np.where(stays, here - np.exp(going), 0))[:, None]
    said = SHARES[kind](start.facts[:, 3:].astype(np.float64) + exit_bias)
    np.testing.assert_allclose(known.answers, start.answers + weight * said, atol=1e-5)
    tau = sigmoid(scaled)
    np.testing.assert_allclose(noted, np.where(stays, tau, 7), atol=1e-5)
    size = np.where(known.left & freeze, 0, tau)
    np.testing.assert_allclose(known.tau, np.where(asked, size, start.tau), atol=1e-5)


def test_a_step_size_that_is_given_replaces_the_own(graph: Adjacency) -> None:
    known, noted = books(array(60, 3), 0), np.zeros(60, np.float32)
    zero = np.float32(0)
    manner = kernels.Manner(zero, zero, False, False, zero, np.float32(0.25), False)
    given = (np.arange(60), 0, kernels.THRESHOLD, np.float32(-np.inf), np.empty(0, np.int64))
    kernels.decide(
        1, *given, manner, structure(graph, np.empty((0, 1), np.float32)),
        np.empty(0, np.float32), kernels.VALUES, known, noted,
    )  # fmt: skip
    assert (noted == 0.25).all()
    assert (known.tau == 0.25).all()


def test_who_has_left_is_read_as_it_is() -> None:
    rows, left = np.array([0, 2, 3, 5]), np.array([1, 0, 0, 1, 1, 0], np.bool_)
    read, write = array(6, 16), array(6, 16)
    before = write.copy()
    assert kernels.drop(rows, left, read, write) == 2
    assert rows[:2].tolist() == [2, 5]
    np.testing.assert_array_equal(write[[0, 3]], read[[0, 3]])
    np.testing.assert_array_equal(write[[1, 2, 4, 5]], before[[1, 2, 4, 5]])


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


@pytest.mark.parametrize("name", ["advance", "step_nodes", "step_graphs", "decide", "go_back"])
def test_both_ways_are_kept_apart_on_disk(name: str) -> None:
    kernel = getattr(kernels, name)
    one, other = (way.py_func.__qualname__ for way in (kernel.serial, kernel.parallel))
    assert one != other  # that is what Numba files them under


def test_all_of_them_are_kept_on_disk(graph: Adjacency, threads: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", numba.NumbaWarning)
        test_a_step_of_some_nodes(16, 5, graph, threads)
        test_decisions(True, False, "CLASSES", "THRESHOLD", graph, threads)
    for name in ("step_nodes", "decide"):
        kernel = getattr(kernels, name)
        way = kernel.serial if threads == 1 else kernel.parallel
        assert way.stats.cache_hits or way.stats.cache_misses
        assert list(Path(way.stats.cache_path).glob(f"kernels.{way.py_func.__qualname__}-*.nbi"))
