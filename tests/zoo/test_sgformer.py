from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from eegnn.graph import Adjacency
from eegnn.zoo.sgformer import SGFormer, SimpleAttention
from tests.graphs import Matrix, Pairs, both_ways
from tests.zoo.examples import (
    GRAPHS,
    adjacency,
    array,
    batch_norm,
    drawn,
    gcn_by_hand,
    layer_norm,
    linear,
    ready,
    states,
)


def attention_by_hand(module: Any, z: Matrix) -> Matrix:
    """With the whole [n, n] matrix of each head."""
    n, m = z.shape
    q, k, v = (
        linear(part, z).reshape(n, module.heads, m)
        for part in (module.query, module.key, module.value)
    )
    q, k = q / np.sqrt((q**2).sum()), k / np.sqrt((k**2).sum())
    heads = []
    for head in range(module.heads):
        weight = np.eye(n) + q[:, head] @ k[:, head].T / n
        heads.append(weight @ v[:, head] / weight.sum(axis=1, keepdims=True))
    return np.mean(heads, axis=0)


@pytest.mark.parametrize("heads", [1, 3])
def test_attention_is_the_quadratic_formula_in_each_graph(heads: int) -> None:
    module, z = drawn(SimpleAttention(4, heads)), states(6)
    adj = Adjacency.from_edge_index(both_ways([]), 6, torch.tensor([0, 0, 0, 1, 3, 3]))
    expected = [attention_by_hand(module, array(z)[part]) for part in (slice(3), [3], slice(4, 6))]
    np.testing.assert_allclose(array(module(z, adj)), np.concatenate(expected), atol=1e-12)


@pytest.mark.parametrize(("n", "pairs"), GRAPHS)
@pytest.mark.parametrize(("convolutions", "attention_layers"), [(2, 1), (3, 2), (1, 2)])
def test_states_are_those_of_the_authors_medium_size_runs(
    n: int, pairs: Pairs, convolutions: int, attention_layers: int
) -> None:
    model = ready(
        SGFormer(
            3, 4, 2, convolutions, attention_layers=attention_layers, heads=2, graph_weight=0.3
        )
    )
    x = states(n, 3)
    h = array(model.encoder(x))
    z = g = h
    assert len(model.attention) == attention_layers
    for layer in model.attention:
        z = layer_norm(layer.norm, (attention_by_hand(layer.attention, z) + z) / 2)
    assert len(model.convs) == convolutions == len(model.norms) + 1
    for layer in range(convolutions):
        g = gcn_by_hand(model.convs[layer].conv, g, n, pairs)
        if layer < convolutions - 1:
            g = np.maximum(batch_norm(model.norms[layer].module, g), 0)
    expected = array(model.decoder(torch.from_numpy(0.3 * g + 0.7 * z)))
    np.testing.assert_allclose(array(model(x, adjacency(n, pairs))), expected, atol=1e-10)


def test_a_node_that_contradicts_itself_has_a_finite_output() -> None:
    module = SimpleAttention(1)
    with torch.no_grad():
        for part, weight in ((module.query, 1.0), (module.key, -1.0), (module.value, 1.0)):
            part.weight.fill_(weight)
            part.bias.zero_()
    assert module(torch.ones(1, 1), adjacency(1, [])).isfinite().all()
    assert module(torch.zeros(2, 1), adjacency(2, [])).isfinite().all()
