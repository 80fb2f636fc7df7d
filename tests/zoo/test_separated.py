from __future__ import annotations

from math import erf
from typing import Any

import numpy as np
import pytest

from eegnn.zoo.separated import SeparatedGNN
from tests.graphs import Matrix, Pairs
from tests.zoo.examples import (
    GRAPHS,
    adjacency,
    array,
    layer_norm,
    linear,
    neighbours,
    ready,
    states,
)


def gelu(x: Matrix) -> Matrix:
    return x * (1 + np.vectorize(erf, otypes=[float])(x / np.sqrt(2))) / 2


def average(scores: Any, values: Matrix, n: int, pairs: Pairs, heads: int) -> Matrix:
    """For each node and head; `scores(i, j, head)` is that of neighbour j."""
    width = values.shape[1] // heads
    out = np.zeros_like(values)
    for i, around in enumerate(neighbours(n, pairs)):
        for head in range(heads) if around else ():
            share = np.exp([scores(i, j, head) for j in around])
            part = slice(head * width, (head + 1) * width)
            out[i, part] = share @ values[around, part] / share.sum()
    return out


def ffn(modules: Any, x: Matrix) -> Matrix:
    first, _, _, second, _ = modules
    return linear(second, gelu(linear(first, x)))


def gat_sep(layer: Any, h: Matrix, n: int, pairs: Pairs) -> Matrix:
    z = linear(layer.lin, layer_norm(layer.norm, h))
    attention = layer.attention
    of_neighbour, of_own = linear(attention.neighbour, z), z @ array(attention.own.weight).T

    def score(i: int, j: int, head: int) -> float:
        value = of_neighbour[j, head] + of_own[i, head]
        return max(value, 0.2 * value)

    return h + ffn(layer.ffn, np.concatenate([z, average(score, z, n, pairs, 2)], axis=1))


def gt_sep(layer: Any, h: Matrix, n: int, pairs: Pairs) -> Matrix:
    z = layer_norm(layer.norm, h)
    attention = layer.attention
    q, k, v = (linear(part, z) for part in (attention.query, attention.key, attention.value))

    def score(i: int, j: int, head: int) -> float:
        part = slice(2 * head, 2 * head + 2)
        return q[i, part] @ k[j, part] / np.sqrt(2)

    h = h + linear(layer.lin, np.concatenate([z, average(score, v, n, pairs, 2)], axis=1))
    norm, *rest = layer.ffn
    return h + ffn(rest, layer_norm(norm, h))


@pytest.mark.parametrize(("n", "pairs"), GRAPHS)
@pytest.mark.parametrize(("attention", "by_hand"), [("gat", gat_sep), ("gt", gt_sep)])
def test_outputs_are_those_of_the_authors_model(
    attention: Any, by_hand: Any, n: int, pairs: Pairs
) -> None:
    model, x = ready(SeparatedGNN(3, 4, 2, 2, attention=attention, heads=2)), states(n, 3)
    h = gelu(linear(model.encoder, array(x)))
    for layer in model.layers:
        h = by_hand(layer, h, n, pairs)
    expected = linear(model.decoder.mlp.lins[0], layer_norm(model.decoder.norm, h))
    np.testing.assert_allclose(array(model(x, adjacency(n, pairs))), expected, atol=1e-10)
