from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.utils import to_dense_adj

from eegnn.nn.dropout import Dropout
from eegnn.zoo.apgcn import APGCN, _propagate_with_edges_dropped
from tests.graphs import TRIANGLE_AND_TAIL, Matrix, Pairs, both_ways, dense, features, graphs
from tests.zoo.examples import adjacency, array

few = settings(deadline=None, max_examples=8)
STEPS = 5
CHANNELS = 3


def model(num_layers: int = STEPS, **options: Any) -> APGCN:
    """A model whose halting unit has large weights, so that nodes halt at different steps."""
    torch.manual_seed(3)
    built = APGCN(3, 4, CHANNELS, num_layers, **options).double().eval()
    with torch.no_grad():
        built.encoder.weight.mul_(3)
        built.halt.weight.mul_(4)
        built.halt.bias.fill_(-3)
    return built


class Noise:
    """What dropout multiplies by, and which edges are kept: nothing is dropped by default."""

    def __init__(self, n: int, hidden: int = 4) -> None:
        self.features = np.ones((n, 3))
        self.states = np.ones((n, hidden))
        self.deeper: list[Matrix] = []
        self.scores = np.ones((n, CHANNELS))
        self.edges: list[Matrix] = [np.ones((n, n))] * 100  # [target, source]
        self.updates: list[Matrix] = [np.ones(n)] * 100


def scores_by_hand(apgcn: APGCN, x: Matrix, noise: Noise) -> Matrix:
    encoder = apgcn.encoder
    z = np.maximum((x * noise.features) @ array(encoder.weight).T + array(encoder.bias), 0)
    for k, lin in enumerate(apgcn.decoder.mlp.lins):
        drop = noise.states if k == 0 or not noise.deeper else noise.deeper[k - 1]
        z = (z * drop) @ array(lin.get_parameter("weight")).T + array(lin.get_parameter("bias"))
        if k < len(apgcn.decoder.mlp.lins) - 1:
            z = np.maximum(z, 0)
    return z


def by_hand(
    apgcn: APGCN,
    x: Matrix,
    n: int,
    pairs: Pairs,
    noise: Noise | None = None,
    threshold: float = 0.99,
) -> tuple[Matrix, list[int], list[float]]:
    """Node by node, edge by edge: outputs, steps at which nodes went on, and remainders."""
    noise = noise or Noise(n)
    a = dense(n, pairs)
    weight, bias = array(apgcn.halt.weight)[0], apgcn.halt.bias.item()
    z = scores_by_hand(apgcn, x, noise) * noise.scores
    out = np.zeros_like(z)
    steps, total = [1] * n, [0.0] * n
    active = [True] * n
    for k in range(apgcn.num_layers):
        before = z
        kept = a * noise.edges[k]
        degree = [1 + sum(kept[i, j] for i in range(n)) for j in range(n)]  # edges out of j
        z = np.zeros_like(before)
        for i in range(n):
            for j in range(n):
                if i == j or kept[i, j]:
                    z[i] += before[j] / np.sqrt(degree[i] * degree[j])
        for i in range(n):
            if not active[i]:
                continue
            h = 1 / (1 + np.exp(-(weight @ z[i] + bias)))
            goes_on = total[i] + h < threshold
            if goes_on:
                steps[i] += 1
                total[i] += h
            p = total[i] if goes_on and steps[i] < apgcn.num_layers else 1 - total[i]
            out[i] += (p * z[i] + (1 - p) * before[i]) * noise.updates[k][i]
            active[i] = goes_on
        if not any(active):
            break
    for i in range(n):
        out[i] /= steps[i]
    return out, [s - 1 for s in steps], [1 - t for t in total]


def steps_taken(went_on: list[int]) -> list[int]:
    """A node halts after a step; the decisions to go on are one fewer, but for the last step."""
    return [min(1 + count, STEPS) for count in went_on]


@pytest.mark.parametrize("decoder_layers", [1, 3])
@given(graph=graphs(max_nodes=6))
@few
def test_evaluation_is_the_published_loop(decoder_layers: int, graph: tuple[int, Pairs]) -> None:
    n, pairs = graph
    apgcn, x = model(decoder_layers=decoder_layers), features(n)
    out, exits = apgcn(torch.from_numpy(x), adjacency(n, pairs), return_exits=True)
    expected, went_on, remainder = by_hand(apgcn, x, n, pairs)
    np.testing.assert_allclose(array(out), expected, atol=1e-10)
    assert exits.layer.tolist() == steps_taken(went_on)
    cost = sum(a + b for a, b in zip(went_on, remainder, strict=True)) / (STEPS * max(n, 1))
    assert exits.cost.item() == pytest.approx(cost, abs=1e-10)


def test_training_is_the_published_loop_with_the_same_noise() -> None:
    """Draws in order: features, states, deeper layers, scores; each step edges, then updates."""
    n, pairs = 9, [(0, 1), (1, 2), (2, 0), (2, 3), (4, 5), (5, 6), (6, 7), (7, 4), (0, 5)]
    p, q = 0.3, 0.4
    apgcn = model(dropout=p, propagation_dropout=q, decoder_layers=2).train()
    x, adj = features(n), adjacency(n, pairs)
    torch.manual_seed(7)
    out, exits = apgcn(torch.from_numpy(x), adj, return_exits=True)

    torch.manual_seed(7)
    mlp, prop, noise = Dropout(p), Dropout(q), Noise(n)

    def draw(drop: Dropout, *shape: int) -> Matrix:
        return array(drop(torch.ones(*shape, dtype=torch.float64)))

    noise.features, noise.states = draw(mlp, n, 3), draw(mlp, n, 4)
    noise.deeper = [draw(mlp, n, 4)]
    noise.scores = draw(prop, n, CHANNELS)
    noise.edges, noise.updates = [], []
    source, target = adj.edge_index.tolist()
    for _ in range(STEPS):
        kept = np.zeros((n, n))
        kept[target, source] = (torch.rand(adj.num_edges) >= q).numpy()
        noise.edges.append(kept)
        noise.updates.append(draw(prop, n))
    expected, went_on, remainder = by_hand(apgcn, x, n, pairs, noise)
    assert max(went_on) == STEPS  # so that all of the noise was used
    np.testing.assert_allclose(array(out), expected, atol=1e-10)
    assert exits.layer.tolist() == steps_taken(went_on)
    cost = np.mean(went_on) + np.mean(remainder)
    assert exits.cost.item() * STEPS == pytest.approx(cost, abs=1e-10)


def test_without_dropping_the_matrix_is_that_of_gcn() -> None:
    n, edges = 5, both_ways(TRIANGLE_AND_TAIL)  # the last node is isolated
    index, weight = gcn_norm(edges, None, n, dtype=torch.float64)
    matrix = to_dense_adj(index, edge_attr=weight, max_num_nodes=n)[0]
    adj = adjacency(n, TRIANGLE_AND_TAIL)
    reverse = adj.col.argsort(stable=True)
    found = _propagate_with_edges_dropped(torch.eye(n, dtype=torch.float64), adj, reverse, 0.0)
    assert torch.allclose(found, matrix, atol=1e-14)


@pytest.mark.parametrize("p", [0.0, 0.5, 1.0])
def test_propagation_with_dropped_edges_has_the_right_gradient(p: float) -> None:
    ring = [(i, (i + 1) % 7) for i in range(7)]
    adj = adjacency(7, ring)
    reverse = adj.col.argsort(stable=True)
    x = torch.from_numpy(features(7, 1)).requires_grad_()

    def seeded(x: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(0)
        return _propagate_with_edges_dropped(x, adj, reverse, p)

    assert torch.autograd.gradcheck(seeded, x)
    matrix = seeded(torch.eye(7, dtype=torch.float64))
    assert torch.allclose(matrix, matrix.T) == (p != 0.5)  # an edge may go in one direction only
    if p == 1.0:
        assert torch.equal(matrix, torch.eye(7, dtype=torch.float64))


def test_the_cost_has_the_gradient_of_the_remainder() -> None:
    """Going on counts 1 without a gradient; the remainder is 1 − S. Finite differences."""
    apgcn, x = model(propagation_dropout=0.0).train(), torch.from_numpy(features(4))

    def cost() -> torch.Tensor:
        _, exits = apgcn(x, both_ways(TRIANGLE_AND_TAIL), return_exits=True)
        return exits.cost

    cost().backward()
    found = apgcn.halt.bias.grad
    assert found is not None
    eps = 1e-6
    ends = []
    for change in (eps, -eps):
        with torch.no_grad():
            apgcn.halt.bias.add_(change)
            ends.append(cost().item())
            apgcn.halt.bias.sub_(change)
    assert found.item() == pytest.approx((ends[0] - ends[1]) / (2 * eps), rel=1e-6)
    assert found.item() < 0  # a larger h leaves a smaller remainder


def test_a_new_model_spreads_its_halting_over_all_steps() -> None:
    apgcn = APGCN(3, 4, 2, num_layers=10)
    assert apgcn.halt.bias.sigmoid().item() == pytest.approx(1 / 11)
    apgcn.halt.bias.data.zero_()
    apgcn.reset_parameters()
    assert apgcn.halt.bias.sigmoid().item() == pytest.approx(1 / 11)


def test_the_halting_unit_learns_in_every_fifth_epoch() -> None:
    apgcn = model().train()
    optimizer = torch.optim.Adam(apgcn.parameters(), lr=0.1)
    moved = []
    for epoch in range(1, 11):
        before = apgcn.halt.weight.detach().clone(), apgcn.encoder.weight.detach().clone()
        apgcn.before_epoch(epoch)
        optimizer.zero_grad()
        out, exits = apgcn(
            torch.from_numpy(features(4)), both_ways(TRIANGLE_AND_TAIL), return_exits=True
        )
        (out.square().sum() + exits.cost).backward()
        optimizer.step()
        assert not torch.equal(apgcn.encoder.weight, before[1])
        if not torch.equal(apgcn.halt.weight, before[0]):
            moved.append(epoch)
    assert moved == [5, 10]


@pytest.mark.parametrize("threshold", [0.0, 0.3, 0.8, 1.0])
def test_exit_threshold_takes_the_place_of_the_own_one(threshold: float) -> None:
    apgcn, x = model(), features(4)
    out, exits = apgcn.predict(
        torch.from_numpy(x), both_ways(TRIANGLE_AND_TAIL), exit_threshold=threshold
    )
    expected, went_on, _ = by_hand(apgcn, x, 4, TRIANGLE_AND_TAIL, threshold=threshold)
    np.testing.assert_allclose(array(out), expected, atol=1e-10)
    assert exits.layer.tolist() == steps_taken(went_on)
    if threshold == 0:
        assert exits.tau.tolist() == [[0.0] * 4]  # the loop ends when every node has halted


def test_wrong_options_of_a_prediction_are_named() -> None:
    x, adj = torch.from_numpy(features(4)), adjacency(4, TRIANGLE_AND_TAIL)
    with pytest.raises(ValueError, match="sample=True needs a model that draws its exits"):
        model().predict(x, adj, sample=True)
    with pytest.raises(ValueError, match=r"exit_threshold must be in \[0, 1\], got 2"):
        model().predict(x, adj, exit_threshold=2)


def test_exits_say_which_nodes_went_on_at_each_step() -> None:
    x, adj = features(9), adjacency(9, TRIANGLE_AND_TAIL)
    _, exits = model()(torch.from_numpy(x), adj, return_exits=True)
    _, went_on, _ = by_hand(model(), x, 9, TRIANGLE_AND_TAIL)
    assert {*went_on} == {0, 1, 2, 3, 4, STEPS}  # nodes of this model halt at every step
    assert exits.tau.sum(dim=0).tolist() == exits.time.tolist() == went_on
    assert bool((exits.tau.diff(dim=0) <= 0).all())  # no node comes back


def test_a_node_that_halted_does_not_come_back() -> None:
    """On a path with scores 20, 0, −40 the first node has 10 after a step and 1.7 after two."""
    apgcn = APGCN(1, 2, 1, STEPS).double().eval()
    path, x = both_ways([(0, 1), (1, 2)]), torch.tensor([[20.0], [0.0], [-40.0]]).double()
    with torch.no_grad():
        apgcn.encoder.weight.copy_(torch.tensor([[1.0], [-1.0]]))
        apgcn.encoder.bias.zero_()
        apgcn.decoder.mlp.lins[0].get_parameter("weight").copy_(torch.tensor([[1.0, -1.0]]))
        apgcn.decoder.mlp.lins[0].get_parameter("bias").zero_()
        apgcn.halt.weight.fill_(1)
        apgcn.halt.bias.zero_()
    _, exits = apgcn(x, path, return_exits=True)
    assert exits.tau[:2].tolist() == [[0, 1, 1], [0, 1, 1]]
    assert exits.layer[0] == 1


def test_a_graph_leaves_with_its_last_node_and_pools_their_outputs() -> None:
    x = features(9)
    expected, went_on, _ = by_hand(model(), x, 9, TRIANGLE_AND_TAIL)
    out, exits = model(level="graph")(
        torch.from_numpy(x), adjacency(9, TRIANGLE_AND_TAIL), return_exits=True
    )
    np.testing.assert_allclose(array(out), expected.mean(axis=0, keepdims=True), atol=1e-10)
    assert exits.layer.tolist() == steps_taken([max(went_on)])
