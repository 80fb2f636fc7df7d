from __future__ import annotations

import numpy as np
import pytest
import torch
from torch_geometric.nn import GCNConv

from eegnn.zoo.graphcon import GraphCON
from tests.graphs import Matrix, Pairs, features
from tests.zoo.examples import GRAPHS, M, adjacency, array, check_states, drawn, gcn_matrix


def forces(model: GraphCON, x: Matrix, a: Matrix) -> Matrix:
    w, r, b = (array(p) for p in (model.conv.weight, model.residual.weight, model.residual.bias))
    return np.maximum(a @ x @ w.T + x @ r.T + b, 0)


def by_hand(model: GraphCON, h: Matrix, n: int, pairs: Pairs) -> Matrix:
    a, position, velocity = gcn_matrix(n, pairs), h, h
    for _ in range(model.num_layers):
        force = forces(model, position, a) - model.alpha * velocity - model.gamma * position
        velocity = velocity + model.step_size * force
        position = position + model.step_size * velocity
    return position


@pytest.mark.parametrize("graph", GRAPHS)
def test_states_follow_the_equations(graph: tuple[int, Pairs]) -> None:
    n, pairs = graph
    model = drawn(GraphCON(3, M, 2, 4, step_size=0.3, alpha=0.7, gamma=0.4))
    check_states(model, by_hand, n, pairs)


def test_its_convolution_is_pygs() -> None:
    n, pairs = GRAPHS[1]
    model = drawn(GraphCON(3, M, 2, 1, step_size=0.5, alpha=0.0, gamma=0.0))
    conv, adj, x = GCNConv(M, M, bias=False).double(), adjacency(n, pairs), features(n)
    conv.lin.weight = model.conv.weight
    h = model.encoder(torch.from_numpy(x))
    force = (conv(h, adj.edge_index) + model.residual(h)).relu()
    expected = model.decoder(h + 0.5 * (h + 0.5 * force))
    torch.testing.assert_close(model(torch.from_numpy(x), adj), expected, rtol=0, atol=1e-12)


def test_with_all_constants_one_it_forgets_its_velocity() -> None:
    n, pairs = GRAPHS[1]

    def without_velocity(model: GraphCON, h: Matrix, n: int, pairs: Pairs) -> Matrix:
        for _ in range(model.num_layers):
            h = forces(model, h, gcn_matrix(n, pairs))
        return h

    check_states(drawn(GraphCON(3, M, 2, 3)), without_velocity, n, pairs)


def test_without_coupling_it_is_a_damped_oscillator() -> None:
    model = GraphCON(3, 1, 1, step_size=5e-3, alpha=0.3, gamma=2.0).double()
    with torch.no_grad():
        for weight in (*model.conv.parameters(), *model.residual.parameters()):
            weight.zero_()
        h = torch.ones(1, 1, dtype=torch.float64)
        found = model.run_layers(h, adjacency(1, []), None, 800)
    # x'' + 0.3 x' + 2 x = 0 from x = x' = 1, at time 4
    frequency = np.sqrt(2 - 0.15**2)
    wave = np.cos(4 * frequency) + (1 + 0.15) / frequency * np.sin(4 * frequency)
    np.testing.assert_allclose(array(found), np.exp(-0.15 * 4) * wave, atol=1e-2)
