from __future__ import annotations

import numpy as np
import pytest
import torch
from torch_geometric.nn import GINEConv

from eegnn.zoo.gin import two_layers
from eegnn.zoo.gine import GINE, GINEStep
from tests.graphs import Pairs, both_ways
from tests.zoo.examples import GRAPHS, adjacency, array, drawn, neighbours, states

every_graph = pytest.mark.parametrize(("n", "pairs"), GRAPHS)


@every_graph
@pytest.mark.parametrize("edge_dim", [None, 3])
def test_a_step_is_its_formula(n: int, pairs: Pairs, edge_dim: int | None) -> None:
    step, h, adj = drawn(GINEStep(4, edge_dim=edge_dim)), states(n), adjacency(n, pairs)
    e = None if edge_dim is None else states(adj.num_edges, edge_dim, seed=5)
    w1, b1, w2, b2 = (array(p) for p in step.conv.nn.parameters())
    around = neighbours(n, pairs)
    column = {(u, v): k for k, (u, v) in enumerate(adj.edge_index.T.tolist())}
    expected = np.zeros((n, 4))
    for i in range(n):
        z = array(h)[i]
        for j in around[i]:
            message = array(h)[j]
            if e is not None:
                message = message + array(step.conv.lin(e[column[j, i]]))
            z = z + np.maximum(message, 0)
        expected[i] = np.maximum(w2 @ np.maximum(w1 @ z + b1, 0) + b2, 0)
    given = () if e is None else (e,)
    np.testing.assert_allclose(array(step(h, adj, *given)), expected, atol=1e-12)


def test_a_model_of_one_layer_is_pygs_layer_on_the_given_columns() -> None:
    n, pairs = GRAPHS[0]
    model, edges = drawn(GINE(4, 6, 2, 1, edge_dim=3)), both_ways(pairs)
    x, e = states(n), states(edges.size(1), 3, seed=5)  # unlike in the two directions
    conv = GINEConv(two_layers(6), edge_dim=3).double()
    conv.load_state_dict(model.layers[0].get_submodule("step.conv").state_dict())
    expected = model.decoder(conv(model.encoder(x), edges, e).relu())
    assert torch.allclose(model(x, edges, e), expected, atol=1e-12)
