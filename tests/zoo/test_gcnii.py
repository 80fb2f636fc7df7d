from __future__ import annotations

import numpy as np
import pytest
import torch

from eegnn.zoo.gcnii import GCNII
from tests.graphs import Pairs
from tests.zoo.examples import GRAPHS, adjacency, array, drawn, gcn_matrix, states

every_graph = pytest.mark.parametrize(("n", "pairs"), GRAPHS)


@every_graph
@pytest.mark.parametrize("shared", [False, True])
def test_layers_are_their_formula(n: int, pairs: Pairs, shared: bool) -> None:
    model, initial = drawn(GCNII(4, 4, 2, 3, alpha=0.3, theta=1.5, shared=shared)), states(n)
    a, h = gcn_matrix(n, pairs), array(initial)
    for number in (1, 2, 3):
        layer = model.layers[0 if shared else number - 1]
        beta = np.log(1.5 / (1 if shared else number) + 1)
        weight = array(layer.get_parameter("step.conv.weight1"))
        mixed = 0.7 * a @ h + 0.3 * array(initial)
        h = np.maximum(mixed @ ((1 - beta) * np.eye(4) + beta * weight), 0)
    found, _ = model.evolve(initial, adjacency(n, pairs))
    expected = model.decoder(torch.from_numpy(h))
    np.testing.assert_allclose(array(found), array(expected), atol=1e-12)
