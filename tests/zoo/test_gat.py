from __future__ import annotations

import numpy as np
import pytest

from eegnn.zoo.gat import GATStep
from tests.graphs import Pairs
from tests.zoo.examples import GRAPHS, adjacency, array, drawn, gat_by_hand, states


@pytest.mark.parametrize(("n", "pairs"), GRAPHS)
@pytest.mark.parametrize("heads", [1, 2])
def test_a_step_is_its_formula(n: int, pairs: Pairs, heads: int) -> None:
    step, h = drawn(GATStep(4, heads=heads)), states(n)
    z = gat_by_hand(step.conv, array(h), n, pairs) + array(step.get_parameter("conv.bias"))
    np.testing.assert_allclose(array(step(h, adjacency(n, pairs))), np.maximum(z, 0), atol=1e-12)
