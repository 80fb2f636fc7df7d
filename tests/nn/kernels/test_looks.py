"""What is seen of states, and back, against autograd in double precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from eegnn import Adjacency
from tests.nn.kernels.examples import WIDTHS, array, leaf, panels

kernels: Any = pytest.importorskip("eegnn.nn.kernels")


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
