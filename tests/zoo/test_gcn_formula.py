from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given

from eegnn.graph import Adjacency
from eegnn.zoo.gcn import GCN
from tests.graphs import TRIANGLE_AND_TAIL, Matrix, Pairs, both_ways, dense, features, graphs, quick
from tests.zoo.test_gcn import model


def array(tensor: torch.Tensor) -> Matrix:
    return tensor.detach().numpy()


def by_hand(gcn: GCN, x: Matrix, n: int, pairs: Pairs, limit: int | None = None) -> Matrix:
    """ReLU(D^-1/2 (A + I) D^-1/2 H W + b) layer by layer, with dense matrices."""
    a = dense(n, pairs) + np.eye(n)
    scale = np.diag(1 / np.sqrt(a.sum(axis=1)))
    a = scale @ a @ scale
    h = np.maximum(x @ array(gcn.encoder.weight).T + array(gcn.encoder.bias), 0)
    for layer in gcn.layers[:limit]:
        weight = layer.get_parameter("step.conv.lin.weight")
        bias = layer.get_parameter("step.conv.bias")
        out = np.maximum(a @ h @ array(weight).T + array(bias), 0)
        h = h + out if gcn.residual else out
    return h


def decoded(gcn: GCN, h: Matrix) -> Matrix:
    return array(gcn.decoder(torch.from_numpy(h)))


@pytest.mark.parametrize("residual", [False, True])
@given(graph=graphs())
@quick
def test_layers_are_the_dense_formula(residual: bool, graph: tuple[int, Pairs]) -> None:
    n, pairs = graph
    gcn, x = model(residual=residual), features(n)
    found = gcn(torch.from_numpy(x), Adjacency.from_edge_index(both_ways(pairs), n))
    np.testing.assert_allclose(array(found), decoded(gcn, by_hand(gcn, x, n, pairs)), atol=1e-12)


@pytest.mark.parametrize(("pool", "reduce"), [("mean", np.mean), ("add", np.sum), ("max", np.max)])
def test_graphs_are_pooled_before_they_are_decoded(pool: str, reduce: object) -> None:
    assert callable(reduce)
    gcn, x = model(level="graph", pool=pool), features(4)
    found = gcn(torch.from_numpy(x), both_ways(TRIANGLE_AND_TAIL))
    states = reduce(by_hand(gcn, x, 4, TRIANGLE_AND_TAIL), axis=0, keepdims=True)
    np.testing.assert_allclose(array(found), decoded(gcn, states), atol=1e-12)


@pytest.mark.parametrize(("given_limit", "layers"), [(1, 1), (2, 2), (3, 3), (9, 3)])
def test_max_layers_stops_early(given_limit: int, layers: int) -> None:
    gcn, x = model(), features(4)
    out, exits = gcn.predict(
        torch.from_numpy(x), both_ways(TRIANGLE_AND_TAIL), max_layers=given_limit
    )
    assert exits.layer.tolist() == [layers] * 4
    expected = decoded(gcn, by_hand(gcn, x, 4, TRIANGLE_AND_TAIL, layers))
    np.testing.assert_allclose(array(out), expected, atol=1e-12)
