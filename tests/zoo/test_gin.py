from __future__ import annotations

import numpy as np
import pytest

from eegnn.zoo.gin import GINStep
from tests.graphs import Pairs, dense
from tests.zoo.examples import GRAPHS, adjacency, array, drawn, states

every_graph = pytest.mark.parametrize(("n", "pairs"), GRAPHS)


@every_graph
def test_a_step_is_its_formula(n: int, pairs: Pairs) -> None:
    step, h = drawn(GINStep(4)), states(n)
    w1, b1, w2, b2 = (array(p) for p in step.conv.nn.parameters())
    z = (np.eye(n) + dense(n, pairs)) @ array(h)
    expected = np.maximum(np.maximum(z @ w1.T + b1, 0) @ w2.T + b2, 0)
    np.testing.assert_allclose(array(step(h, adjacency(n, pairs))), expected, atol=1e-12)
