from __future__ import annotations

import numpy as np
import pytest
import torch

from eegnn.nn.steps import ConvStep
from eegnn.zoo.gat import GATStep
from tests.graphs import Pairs
from tests.zoo.examples import GRAPHS, adjacency, array, drawn, gat_by_hand, states


@pytest.mark.parametrize(("n", "pairs"), GRAPHS)
@pytest.mark.parametrize("heads", [1, 2])
def test_a_step_is_its_formula(n: int, pairs: Pairs, heads: int) -> None:
    step, h = drawn(GATStep(4, heads=heads)), states(n)
    z = gat_by_hand(step.conv, array(h), n, pairs) + array(step.get_parameter("conv.bias"))
    np.testing.assert_allclose(array(step(h, adjacency(n, pairs))), np.maximum(z, 0), atol=1e-12)


@pytest.mark.parametrize("scale", [1.0, 1000.0])
@pytest.mark.parametrize(("n", "pairs"), GRAPHS)
@pytest.mark.parametrize("heads", [1, 2])
def test_outputs_and_gradients_are_those_of_pygs_messages(
    n: int, pairs: Pairs, heads: int, scale: float
) -> None:
    step, h, adj = drawn(GATStep(4, heads=heads)), states(n) * scale, adjacency(n, pairs)
    inputs = [h.requires_grad_(), *step.parameters()]
    grad = torch.randn(n, 4, dtype=h.dtype, generator=torch.Generator().manual_seed(2))
    expected, found = ConvStep.forward(step, h, adj), step(h, adj)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(
        torch.autograd.grad(found, inputs, grad), torch.autograd.grad(expected, inputs, grad)
    )
