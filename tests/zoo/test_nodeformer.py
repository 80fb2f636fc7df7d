from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from eegnn.graph import Adjacency
from eegnn.zoo.nodeformer import NodeFormer, orthogonal_features, softmax_features
from tests.graphs import Matrix, Pairs, both_ways
from tests.zoo.examples import (
    GRAPHS,
    adjacency,
    array,
    gcn_matrix,
    layer_norm,
    linear,
    ready,
    states,
)


def kernel(x: Matrix, projection: Matrix, is_query: bool) -> Matrix:
    """The features of one head, [n, M], stabilised as the authors do."""
    z = x @ projection.T
    largest = z.max(axis=1, keepdims=True) if is_query else z.max()
    z = np.exp(z - (x**2).sum(axis=1, keepdims=True) / 2 - largest)
    return (z + 1e-6) / np.sqrt(len(projection))


def attention_by_hand(
    module: Any, h: Matrix, n: int, pairs: Pairs, projection: Matrix, noise: Matrix | None
) -> Matrix:
    """With the whole [n, n] matrix of each head, and of each draw of the noise."""
    width, tau, heads = h.shape[1], module.temperature, []
    for head in range(module.heads):
        part = slice(head * width, (head + 1) * width)
        q, k, v = (linear(lin, h)[:, part] for lin in (module.query, module.key, module.value))
        q, k = (x / np.sqrt(tau) / width**0.25 for x in (q, k))
        weight = kernel(q, projection, True) @ kernel(k, projection, False).T
        draws = [np.zeros(n)] if noise is None else noise[:, head].T
        z = np.zeros_like(h)
        for draw in draws:
            a = weight * np.exp(draw / tau)
            z += a @ v / a.sum(axis=1, keepdims=True) / len(draws)
        if module.bias is not None:
            share = 1 / (1 + np.exp(-array(module.bias)[head]))
            z += share * gcn_matrix(n, pairs) @ v
        heads.append(z)
    return linear(module.out, np.concatenate(heads, axis=1))


@pytest.mark.parametrize(("n", "pairs"), GRAPHS)
@pytest.mark.parametrize("relational_bias", [True, False])
@pytest.mark.parametrize("training", [True, False])
def test_states_are_the_formula(
    n: int, pairs: Pairs, relational_bias: bool, training: bool
) -> None:
    model = ready(
        NodeFormer(
            3, 4, 2, 1, heads=2, random_features=6, gumbel_samples=3,
            relational_bias=relational_bias,
        )
    )  # fmt: skip
    x = states(n, 3)
    torch.manual_seed(5)
    found = array(model.train(training)(x, adjacency(n, pairs)))
    torch.manual_seed(5)
    generator = None if training else torch.Generator().manual_seed(0)
    projection = array(orthogonal_features(6, 4, generator)).astype(float)
    exponential = torch.empty(n, 2, 3, dtype=torch.float64).exponential_()
    noise = -np.log(array(exponential)) if training else None

    encoder, (layer,) = model.encoder, model.layers
    h = layer_norm(encoder.norm, linear(encoder, array(x)))
    h = np.where(h > 0, h, np.expm1(h))
    h = h + attention_by_hand(layer.attention, h, n, pairs, projection, noise)
    expected = linear(model.decoder.mlp.lins[0], layer_norm(layer.norm, h))
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_many_features_make_the_attention_of_softmax() -> None:
    # Short vectors: the variance of the features grows like the exponential of squared lengths.
    q, k = states(5, 4, 1).unsqueeze(1) / 2, states(5, 4, 2).unsqueeze(1) / 2
    projection = orthogonal_features(20_000, 4, torch.Generator().manual_seed(1)).double()
    adj = Adjacency.from_edge_index(both_ways([]), 5)
    phi_q = softmax_features(q, projection, None).squeeze(1)
    phi_k = softmax_features(k, projection, adj).squeeze(1)
    kernel_matrix = phi_q @ phi_k.T
    weight = kernel_matrix / kernel_matrix.sum(dim=1, keepdim=True)
    expected = (q.squeeze(1) @ k.squeeze(1).T).softmax(dim=1)
    assert (weight - expected).abs().max() < 0.02
    assert (weight - 0.2).abs().max() > 0.1


def test_random_features_are_orthogonal_in_blocks() -> None:
    rows = orthogonal_features(7, 3, torch.Generator().manual_seed(0)).double()
    for block in (rows[:3], rows[3:6]):
        products = block @ block.T
        assert torch.allclose(products, products.diag().diag(), atol=1e-5)
    assert rows.shape == (7, 3)
