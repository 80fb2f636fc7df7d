"""Steps that can be gone back, and what is seen of states, against autograd in double precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from eegnn import Adjacency
from tests.nn.kernels.examples import array, structure

kernels: Any = pytest.importorskip("eegnn.nn.kernels")

WIDTHS = [5, 16, 33, 70]
#: Kernels are given weights times this.
BITS = 2 / np.log(2)


def leaf(a: Any) -> Tensor:
    return torch.tensor(a, dtype=torch.float64, requires_grad=True)


def panels(weight: Any) -> Any:
    return kernels.panels_of(torch.from_numpy(weight))


@pytest.mark.parametrize("with_edges", [False, True])
@pytest.mark.parametrize("width", WIDTHS)
def test_a_step_and_back(width: int, with_edges: bool, graph: Adjacency, threads: int) -> None:
    h, omega, weight, grad = (array(n, width) for n in (60, width, width, 60))
    omega, weight, tau = omega / width, weight / width, array(60, positive=True)
    edge = array(60, width) if with_edges else np.empty((0, width), np.float32)
    given = [leaf(a) for a in (h, omega, weight, tau)]
    z = graph.propagate(given[0], "sym") @ given[2] - (given[0] @ given[1]).relu()
    delta = (z + (torch.from_numpy(edge) if with_edges else 0)).tanh().relu()
    truth = given[0] + given[3].unsqueeze(-1) * delta
    by_truth = torch.autograd.grad(truth, given, torch.from_numpy(grad).double())

    new, kept, by_h = (np.empty_like(h) for _ in range(3))
    board = np.full((60, -(-width // 16) * 16), np.nan, np.float32)
    scaled = structure(graph, np.float32(BITS) * edge)
    bits = [panels(np.float32(BITS) * matrix) for matrix in (omega, weight)]
    kernels.walk(1, h, board, scaled, *bits, tau, False, new, kept)
    np.testing.assert_allclose(new, truth.detach().numpy(), atol=2e-6)
    np.testing.assert_allclose(np.abs(kept), delta.detach().numpy(), atol=2e-6)

    both, by_tau = np.empty((60, 2 * width), np.float32), np.empty(60, np.float32)
    back = [panels(np.ascontiguousarray(matrix.T)) for matrix in (omega, weight)]
    move = np.empty_like(kept)
    kernels.walk(1, h, board, scaled, *bits, tau, True, new, move)
    np.testing.assert_allclose(move, tau[:, None] * kept, rtol=1e-6)
    for way in ("delta", "move", "again"):
        for made in (both, by_h, by_tau, board):
            made[:] = np.nan
        found_in = (board, both, by_h, by_tau)
        if way == "again":
            read = np.full_like(board, np.nan)
            kernels.go_back_again(1, h, tau, grad, read, scaled, *bits, *back, *found_in)
        else:
            given_kept = (move, tau, True) if way == "move" else (kept, tau, False)
            kernels.go_back(1, *given_kept, grad, scaled, *back, *found_in)
        products = h.T.astype(np.float64) @ both
        found: list[Any] = [by_h, -products[:, :width], products[:, width:], by_tau]
        for one, other in zip(found, by_truth, strict=True):
            np.testing.assert_allclose(one, other.numpy(), atol=2e-5)

    old = new.copy()
    kernels.walk(1, h, board, scaled, *bits, tau, False, new, kept[:0])
    np.testing.assert_array_equal(new, old)


def test_a_move_leads_back(threads: int) -> None:
    h, move = array(60, 33), array(60, 33)
    old = np.empty_like(h)
    kernels.before(1, h, move, old)
    np.testing.assert_array_equal(old, h - np.abs(move))


def test_who_does_not_move_has_no_gradient_but_its_own(graph: Adjacency) -> None:
    h, grad, tau = array(60, 16), array(60, 16), np.zeros(60, np.float32)
    board, new, move, by_h = (np.empty_like(h) for _ in range(4))
    weight = panels(np.eye(16, dtype=np.float32))
    given = structure(graph, np.empty((0, 16), np.float32))
    kernels.walk(1, h, board, given, weight, weight, tau, True, new, move)
    both, by_tau = np.empty((60, 32), np.float32), np.empty(60, np.float32)
    kernels.go_back(1, move, tau, True, grad, given, weight, weight, board, both, by_h, by_tau)
    np.testing.assert_array_equal(new, h)
    np.testing.assert_array_equal(by_h, grad)
    assert not by_tau.any()


def test_numbers_that_are_none_get_through(graph: Adjacency) -> None:
    h, grad, tau = array(60, 16), array(60, 16), array(60, positive=True)
    h[3] = np.nan
    board, new, kept, by_h = (np.empty_like(h) for _ in range(4))
    weight = panels(np.eye(16, dtype=np.float32))
    given = structure(graph, np.empty((0, 16), np.float32))
    kernels.walk(1, h, board, given, weight, weight, tau, False, new, kept)
    both, by_tau = np.empty((60, 32), np.float32), np.empty(60, np.float32)
    kernels.go_back(1, kept, tau, False, grad, given, weight, weight, board, both, by_h, by_tau)
    assert np.isnan(new[3]).all()
    assert np.isnan(by_h[3]).all()
    far = np.isfinite(new).all(axis=1)
    assert far.sum() > 30


@pytest.mark.parametrize("dropped", [False, True])
@pytest.mark.parametrize("classes", [1, 2, 20])
@pytest.mark.parametrize("width", WIDTHS)
def test_what_is_seen_and_back(width: int, classes: int, dropped: bool, threads: int) -> None:
    h, heads, decoder = array(60, width), array(3, width), array(classes, width)
    by_facts, by_said = array(3, 60), array(classes, 60)
    drawn = np.random.default_rng(1).integers(-(2**15), 2**15, (60, width)).astype(np.int16)
    below, factor = np.int16(9000), np.float32(1.5)
    given = [leaf(a) for a in (h, heads, decoder)]
    z = given[0] * torch.from_numpy(drawn < below) * 1.5 if dropped else given[0]
    truth = given[1] @ given[0].T, given[2] @ z.T
    gradients = [torch.from_numpy(a).double() for a in (by_facts, by_said)]
    by_truth = torch.autograd.grad(truth, given, gradients)

    numbers = drawn if dropped else drawn[:0]
    facts, said = np.empty_like(by_facts), np.empty_like(by_said)
    first = heads if dropped else np.concatenate([heads, decoder])
    weights = [panels(np.ascontiguousarray(a.T)) for a in (first, decoder)]
    kernels.look(1, h, *weights, numbers, below, factor, facts, said)
    for one, other in zip((facts, said), truth, strict=True):
        np.testing.assert_allclose(one, other.detach().numpy(), atol=5e-5)
    found = np.empty_like(h), np.zeros_like(heads), np.zeros_like(decoder)
    kernels.look_back(1, h, heads, decoder, numbers, below, factor, by_facts, by_said, *found)
    for one, other in zip(found, by_truth, strict=True):
        np.testing.assert_allclose(one, other.numpy(), atol=5e-5)


def test_sums_over_neighbours(graph: Adjacency, threads: int) -> None:
    board, sums = array(60), np.empty(60, np.float32)
    kernels.neighbour_sums(1, board, graph.rowptr.numpy(), graph.col.numpy(), sums)
    truth = graph.propagate(torch.from_numpy(board).double().unsqueeze(-1), "sum").squeeze(-1)
    np.testing.assert_allclose(sums, truth.numpy(), atol=1e-5)
