"""Steps that can be gone back, against autograd in double precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from eegnn import Adjacency
from tests.nn.kernels.examples import WIDTHS, array, leaf, panels, structure

kernels: Any = pytest.importorskip("eegnn.nn.kernels")

#: Kernels are given weights times this.
BITS = 2 / np.log(2)


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


def there_and_back(h: Any, tau: Any, grad: Any, graph: Adjacency, scaled: bool) -> list[Any]:
    """New states, and the gradients of states and τ, where Ω and W are identities."""
    board, new, kept, by_h = (np.empty_like(h) for _ in range(4))
    weight = panels(np.eye(16, dtype=np.float32))
    given = structure(graph, np.empty((0, 16), np.float32))
    kernels.walk(1, h, board, given, weight, weight, tau, scaled, new, kept)
    both, by_tau = np.empty((60, 32), np.float32), np.empty(60, np.float32)
    kernels.go_back(1, kept, tau, scaled, grad, given, weight, weight, board, both, by_h, by_tau)
    return [new, by_h, by_tau]


def test_who_does_not_move_has_no_gradient_but_its_own(graph: Adjacency) -> None:
    h, grad, tau = array(60, 16), array(60, 16), np.zeros(60, np.float32)
    new, by_h, by_tau = there_and_back(h, tau, grad, graph, scaled=True)
    np.testing.assert_array_equal(new, h)
    np.testing.assert_array_equal(by_h, grad)
    assert not by_tau.any()


def test_numbers_that_are_none_get_through(graph: Adjacency) -> None:
    h, grad, tau = array(60, 16), array(60, 16), array(60, positive=True)
    h[3] = np.nan
    new, by_h, _ = there_and_back(h, tau, grad, graph, scaled=False)
    assert np.isnan(new[3]).all()
    assert np.isnan(by_h[3]).all()
    far = np.isfinite(new).all(axis=1)
    assert far.sum() > 30
