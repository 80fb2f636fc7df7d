from __future__ import annotations

import numpy as np
import pytest
import torch

from eegnn.zoo.gcnii import GCNII, GCNIIStep
from tests.graphs import Pairs, dense
from tests.nn.model_examples import count
from tests.zoo.examples import GRAPHS, adjacency, array, drawn, states

every_graph = pytest.mark.parametrize(("n", "pairs"), GRAPHS)


@every_graph
@pytest.mark.parametrize("shared", [False, True])
def test_layers_are_their_formula(n: int, pairs: Pairs, shared: bool) -> None:
    model, initial = drawn(GCNII(4, 4, 2, 3, alpha=0.3, theta=1.5, shared=shared)), states(n)
    a = dense(n, pairs) + np.eye(n)
    scale = np.diag(1 / np.sqrt(a.sum(axis=1)))
    h = array(initial)
    for number in (1, 2, 3):
        layer = model.layers[0 if shared else number - 1]
        beta = np.log(1.5 / (1 if shared else number) + 1)
        weight = array(layer.get_parameter("step.conv.weight1"))
        mixed = 0.7 * scale @ a @ scale @ h + 0.3 * array(initial)
        h = np.maximum(mixed @ ((1 - beta) * np.eye(4) + beta * weight), 0)
    found, _ = model.evolve(initial, adjacency(n, pairs))
    expected = model.decoder(torch.from_numpy(h))
    np.testing.assert_allclose(array(found), array(expected), atol=1e-12)


@every_graph
def test_a_step_is_pygs_layer(n: int, pairs: Pairs) -> None:
    step, adj = drawn(GCNIIStep(4, "tanh", layer=3)), adjacency(n, pairs)
    h, initial = states(n), states(n, seed=9)
    expected = step.conv(h, initial, adj.edge_index).tanh()
    assert torch.allclose(step(h, adj, initial), expected, atol=1e-12)


def test_its_number_of_parameters() -> None:
    assert count(GCNII(7, 32, 2, 10)) == (7 * 32 + 32) + 10 * 32 * 32 + 32 * 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": 1.5}, r"alpha must be in \[0, 1\], got 1.5"),
        ({"theta": -1}, "theta must be at least 0, got -1"),
    ],
    ids=str,
)
def test_bad_options_are_named(options: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        GCNII(4, 4, 2, 3, **options)  # type: ignore[arg-type]
