from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given

from eegnn.zoo.gcn import GCN
from tests.graphs import TRIANGLE_AND_TAIL, Matrix, Pairs, features, graphs, quick
from tests.zoo.examples import adjacency, array, drawn, encoded, gcn_by_hand


def model(**options: Any) -> GCN:
    return drawn(GCN(3, 5, 2, 3, **options)).eval()


def by_hand(gcn: GCN, x: Matrix, n: int, pairs: Pairs) -> Matrix:
    """ReLU(D^-1/2 (A + I) D^-1/2 H W + b) layer by layer, with dense matrices."""
    h = encoded(gcn, x)
    for layer in gcn.layers:
        out = np.maximum(gcn_by_hand(layer.get_submodule("step.conv"), h, n, pairs), 0)
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
    found = gcn(torch.from_numpy(x), adjacency(n, pairs))
    np.testing.assert_allclose(array(found), decoded(gcn, by_hand(gcn, x, n, pairs)), atol=1e-10)


@pytest.mark.parametrize(("pool", "reduce"), [("mean", np.mean), ("add", np.sum), ("max", np.max)])
def test_graphs_are_pooled_before_they_are_decoded(pool: str, reduce: Any) -> None:
    gcn, x = model(level="graph", pool=pool), features(4)
    found = gcn(torch.from_numpy(x), adjacency(4, TRIANGLE_AND_TAIL))
    states = reduce(by_hand(gcn, x, 4, TRIANGLE_AND_TAIL), axis=0, keepdims=True)
    np.testing.assert_allclose(array(found), decoded(gcn, states), atol=1e-10)
