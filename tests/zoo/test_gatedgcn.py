from __future__ import annotations

import numpy as np
import pytest

from eegnn.zoo.gatedgcn import GatedGCNStep
from tests.graphs import Pairs
from tests.zoo.examples import GRAPHS, adjacency, array, drawn, neighbours, states


@pytest.mark.parametrize(("n", "pairs"), GRAPHS)
@pytest.mark.parametrize("edge_dim", [None, 3])
def test_a_step_is_its_formula(n: int, pairs: Pairs, edge_dim: int | None) -> None:
    step, adj = drawn(GatedGCNStep(4, edge_dim=edge_dim)), adjacency(n, pairs)
    x = states(n)
    e = states(adj.num_edges, edge_dim or 0, seed=5)
    own, w2, w3, w4 = (
        array(step.get_parameter(f"conv.lin_{name}.weight"))
        for name in ("skip", "key", "query", "value")
    )
    b, b2, b3, b4 = (
        array(step.get_parameter(f"conv.{name}bias"))
        for name in ("", "lin_key.", "lin_query.", "lin_value.")
    )
    h = array(x)
    column = {(u, v): k for k, (u, v) in enumerate(adj.edge_index.T.tolist())}
    expected = np.zeros((n, 4))
    for i, around in enumerate(neighbours(n, pairs)):
        z = own @ h[i] + b
        for j in around:
            mine, theirs = (np.append(h[k], array(e)[column[j, i]]) for k in (i, j))
            gate = 1 / (1 + np.exp(-(w2 @ mine + b2 + w3 @ theirs + b3)))
            z = z + gate * (w4 @ theirs + b4)
        expected[i] = np.maximum(z, 0)
    given = () if edge_dim is None else (e,)
    np.testing.assert_allclose(array(step(x, adj, *given)), expected, atol=1e-12)
