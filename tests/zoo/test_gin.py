from __future__ import annotations

import numpy as np
import pytest
import torch

from eegnn.zoo.gin import GIN, GINStep
from tests.graphs import Pairs, dense
from tests.nn.model_examples import count
from tests.zoo.examples import GRAPHS, adjacency, array, drawn, states

every_graph = pytest.mark.parametrize(("n", "pairs"), GRAPHS)


@every_graph
def test_a_step_is_its_formula(n: int, pairs: Pairs) -> None:
    step, h = drawn(GINStep(4)), states(n)
    w1, b1, w2, b2 = (array(p) for p in step.conv.nn.parameters())
    z = (np.eye(n) + dense(n, pairs)) @ array(h)
    expected = np.maximum(np.maximum(z @ w1.T + b1, 0) @ w2.T + b2, 0)
    np.testing.assert_allclose(array(step(h, adjacency(n, pairs))), expected, atol=1e-12)


@every_graph
def test_a_step_is_pygs_layer(n: int, pairs: Pairs) -> None:
    step, h, adj = drawn(GINStep(4, "tanh")), states(n), adjacency(n, pairs)
    assert torch.allclose(step(h, adj), step.conv(h, adj.edge_index).tanh(), atol=1e-12)


def test_its_number_of_parameters() -> None:
    assert count(GIN(7, 32, 2, 10)) == (7 * 32 + 32) + 10 * 2 * (32 * 32 + 32) + 32 * 2
