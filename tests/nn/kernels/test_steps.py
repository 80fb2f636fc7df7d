"""Steps, against `Adjacency` and dense products in double precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from eegnn import Adjacency
from tests.nn.kernels.examples import array, structure

kernels: Any = pytest.importorskip("eegnn.nn.kernels")
numba: Any = pytest.importorskip("numba")

WIDTHS = [5, 16, 33, 70]


def padded(states: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """With columns that nobody should read, to the next multiple of 16."""
    more = -states.shape[1] % 16
    return np.pad(states, ((0, 0), (0, more)), constant_values=np.nan)


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


def test_arrays_that_lie_by_columns_are_refused(graph: Adjacency) -> None:
    h, omega, weight, edge, tau = drawn(16, False)
    with pytest.raises(numba.TypingError):
        kernels.advance(
            1, np.asfortranarray(h), h.copy(), structure(graph, edge), *panels(omega, weight), tau
        )
