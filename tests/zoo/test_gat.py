from __future__ import annotations

import numpy as np
import pytest

from eegnn.zoo.gat import GAT, GATStep
from tests.graphs import Pairs
from tests.nn.model_examples import count
from tests.zoo.examples import GRAPHS, adjacency, array, drawn, neighbours, states


@pytest.mark.parametrize(("n", "pairs"), GRAPHS)
@pytest.mark.parametrize("heads", [1, 2])
def test_a_step_is_its_formula(n: int, pairs: Pairs, heads: int) -> None:
    step, h = drawn(GATStep(4, heads=heads)), states(n)
    weight = array(step.get_parameter("conv.lin.weight"))
    own, other = (array(step.get_parameter(f"conv.att_{name}"))[0] for name in ("dst", "src"))
    z = (array(h) @ weight.T).reshape(n, heads, 4 // heads)
    expected = np.zeros((n, heads, 4 // heads))
    for i, around in enumerate(neighbours(n, pairs)):
        for k in range(heads):
            group = [*around, i]
            score = np.array([own[k] @ z[i, k] + other[k] @ z[j, k] for j in group])
            share = np.exp(np.where(score > 0, score, 0.2 * score))
            expected[i, k] = share @ z[group, k] / share.sum()
    expected = np.maximum(expected.reshape(n, 4) + array(step.get_parameter("conv.bias")), 0)
    np.testing.assert_allclose(array(step(h, adjacency(n, pairs))), expected, atol=1e-12)


@pytest.mark.parametrize("heads", [1, 4])
def test_its_number_of_parameters(heads: int) -> None:
    layer = 32 * 32 + 3 * 32
    assert count(GAT(7, 32, 2, 10, heads=heads)) == (7 * 32 + 32) + 10 * layer + 32 * 2
