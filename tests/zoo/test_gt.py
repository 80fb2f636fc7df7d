from __future__ import annotations

import numpy as np
import pytest

from eegnn.zoo.gt import GT
from tests.graphs import Pairs
from tests.zoo.examples import GRAPHS, adjacency, array, drawn, neighbours, states


@pytest.mark.parametrize(("n", "pairs"), GRAPHS)
@pytest.mark.parametrize(("heads", "edge_dim"), [(1, None), (2, None), (2, 3)])
def test_a_step_is_its_formula(n: int, pairs: Pairs, heads: int, edge_dim: int | None) -> None:
    model, adj = GT(1, 4, 1, heads=heads, edge_dim=edge_dim), adjacency(n, pairs)
    step = drawn(model.make_step(1))
    x, d = states(n), 4 // heads
    e = states(adj.num_edges, edge_dim or 0, seed=5)
    q, k, v, own = (
        array(x) @ array(step.get_parameter(f"conv.lin_{name}.weight")).T
        + array(step.get_parameter(f"conv.lin_{name}.bias"))
        for name in ("query", "key", "value", "skip")
    )
    along = np.zeros((adj.num_edges, 4))
    if edge_dim is not None:
        along = array(e) @ array(step.get_parameter("conv.lin_edge.weight")).T
    column = {(u, v): k for k, (u, v) in enumerate(adj.edge_index.T.tolist())}
    expected = own.copy()
    for i, around in enumerate(neighbours(n, pairs)):
        for part in (slice(c, c + d) for c in range(0, 4, d)):
            total = 0.0
            message = np.zeros(d)
            for j in around:
                edge = along[column[j, i], part]
                share = np.exp(q[i, part] @ (k[j, part] + edge) / np.sqrt(d))
                total += share
                message += share * (v[j, part] + edge)
            expected[i, part] += message / (total or 1)
    given = () if edge_dim is None else (e,)
    np.testing.assert_allclose(array(step(x, adj, *given)), np.maximum(expected, 0), atol=1e-12)
