from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from eegnn import EEGNN, Adjacency, SASConv
from eegnn.analysis.sensitivity import layer_sensitivity
from eegnn.analysis.states import states_by_layer
from eegnn.nn.model import GraphModel
from eegnn.zoo.registry import ENTRIES, find
from tests.graphs import TRIANGLE_AND_TAIL, both_ways, dense
from tests.graphs import features as numbers
from tests.nn.model_examples import EDGE_INDEX, NUM_NODES, edge_features, features

N, WIDTH, DEPTH = 4, 3, 3
EDGES = both_ways(TRIANGLE_AND_TAIL)


def made(name: str, **options: Any) -> GraphModel:
    torch.manual_seed(3)
    entry = ENTRIES[name]
    return find(entry.home)(2, WIDTH, 2, DEPTH, **entry.options, **options).double()


class Linear(nn.Module):
    """H ↦ Ā H W."""

    def __init__(self, weight: Tensor) -> None:
        super().__init__()
        self.weight = weight

    def forward(self, h: Tensor, adj: Adjacency) -> Tensor:
        return adj.propagate(h, "sym") @ self.weight


def test_of_a_linear_model_it_is_a_product_of_matrix_powers() -> None:
    model = made("gcn")
    torch.manual_seed(0)
    weights = [torch.randn(WIDTH, WIDTH, dtype=torch.float64) for _ in range(DEPTH)]
    model.layers = nn.ModuleList(Linear(weight) for weight in weights)
    found = layer_sensitivity(model, torch.from_numpy(numbers(N, 2)), EDGES)
    a = dense(N, TRIANGLE_AND_TAIL, "sym")
    for layer in range(DEPTH):
        reach = np.linalg.matrix_power(a, DEPTH - layer)
        product = np.linalg.multi_dot([np.eye(WIDTH), *(w.numpy() for w in weights[layer:])])
        pairs = [*TRIANGLE_AND_TAIL, *((v, u) for u, v in TRIANGLE_AND_TAIL)]
        truth = sum(abs(reach[v, u]) for v, u in pairs) * np.abs(product).sum()
        assert float(found[layer]) == pytest.approx(truth, rel=1e-12)


@pytest.mark.parametrize("name", ["sasgnn", "graff", "eegnn"])
def test_it_agrees_with_finite_differences(name: str) -> None:
    # Activations without a kink: at one, a difference is no derivative.
    smooth = {
        "sasgnn": {"activation": "tanh", "inner_activation": "tanh"},
        "graff": {"activation": "tanh"},
        "eegnn": {},
    }
    model, x = made(name, **smooth[name]), torch.from_numpy(numbers(N, 2))
    if isinstance(model, EEGNN):
        model.loop.step = SASConv(WIDTH, activation="tanh", inner_activation="tanh").double()
    found = layer_sensitivity(model, x, EDGES, copies=5)
    pairs = {(int(v), int(u)) for u, v in EDGES.T}
    for layer in range(DEPTH):
        total = 0.0
        for u in range(N):
            for c in range(WIDTH):
                up, down = (nudged(model, x, layer, u, c, eps) for eps in (1e-6, -1e-6))
                slope = ((up - down) / 2e-6).abs().sum(dim=1)
                total += float(sum(slope[v] for v in range(N) if (v, u) in pairs))
        assert float(found[layer]) == pytest.approx(total, rel=1e-5)


def nudged(model: Any, x: Tensor, layer: int, u: int, c: int, eps: float) -> Tensor:
    """The last states, had one number been another at a layer; the steps are taken by hand."""
    adj = Adjacency.from_edge_index(EDGES, N)
    with torch.no_grad():
        h = states_by_layer(model, x, adj)[layer].clone()
        h[u, c] += eps
        for _ in range(layer, DEPTH):
            h = h + advance(model, h, adj)
    return h


def advance(model: Any, h: Tensor, adj: Adjacency) -> Tensor:
    if hasattr(model, "convs"):
        return 0.5 * model.convs[0](h, adj)
    if hasattr(model, "steps"):
        return model.step_size * model.steps[0](h, adj)
    logits = model.loop.confidence(h, adj)
    tau = torch.sigmoid((logits[:, 0] - logits[:, 1]) * model.loop.temperature(h, adj))
    return tau.unsqueeze(-1) * model.loop.step(h, adj)


@pytest.mark.parametrize("copies", [1, 4, 100])
def test_the_number_of_copies_changes_nothing(copies: int) -> None:
    torch.manual_seed(1)
    model = find(ENTRIES["sasgnn"].home)(5, WIDTH, 2, DEPTH, edge_dim=2).double()
    inputs = features().double(), EDGE_INDEX, edge_features().double()
    alone = layer_sensitivity(model, *inputs, copies=1)
    torch.testing.assert_close(layer_sensitivity(model, *inputs, copies=copies), alone)
    assert alone.shape == (DEPTH,)
    assert inputs[0].size(0) == NUM_NODES


def test_a_graph_level_model_is_looked_at_by_its_nodes() -> None:
    x = torch.from_numpy(numbers(N, 2))
    found = [layer_sensitivity(made("gcn", level=level), x, EDGES) for level in ("node", "graph")]
    assert torch.equal(*found)


def test_without_edges_nothing_is_felt() -> None:
    x = torch.from_numpy(numbers(N, 2))
    none = torch.zeros(2, 0, dtype=torch.int64)
    assert layer_sensitivity(made("sasgnn"), x, none).tolist() == [0.0] * DEPTH


def test_no_copies_are_refused() -> None:
    with pytest.raises(ValueError, match="copies must be at least 1"):
        layer_sensitivity(made("sasgnn"), torch.from_numpy(numbers(N, 2)), EDGES, copies=0)
