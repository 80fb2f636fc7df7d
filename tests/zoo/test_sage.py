from __future__ import annotations

import numpy as np
import pytest

from eegnn.zoo.sage import SAGEStep
from tests.graphs import Pairs
from tests.zoo.examples import GRAPHS, adjacency, array, drawn, neighbours, states

every_graph = pytest.mark.parametrize(("n", "pairs"), GRAPHS)


@every_graph
def test_a_step_is_its_formula(n: int, pairs: Pairs) -> None:
    step, h = drawn(SAGEStep(4)), states(n)
    w1, b, w2 = (
        array(step.get_parameter(f"conv.{name}"))
        for name in ("lin_l.weight", "lin_l.bias", "lin_r.weight")
    )
    expected = np.zeros((n, 4))
    for i, around in enumerate(neighbours(n, pairs)):
        mean = sum((array(h)[j] for j in around), np.zeros(4)) / max(len(around), 1)
        expected[i] = np.maximum(w1 @ mean + b + w2 @ array(h)[i], 0)
    np.testing.assert_allclose(array(step(h, adjacency(n, pairs))), expected, atol=1e-12)
