"""What holds for all classic models."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from eegnn.graph import Adjacency
from eegnn.nn.activations import ACTIVATIONS
from eegnn.zoo.gat import GAT
from eegnn.zoo.gatedgcn import GatedGCN
from eegnn.zoo.gcn import GCN, GCNStep
from eegnn.zoo.gcnii import GCNII, GCNIIStep
from eegnn.zoo.gin import GIN, GINStep
from eegnn.zoo.gine import GINE
from eegnn.zoo.gt import GT
from eegnn.zoo.layered import LayeredModel
from eegnn.zoo.sage import GraphSAGE, SAGEStep
from tests.graphs import Pairs
from tests.zoo.examples import GRAPHS, adjacency, drawn, states

CLASSIC = [GCN, GraphSAGE, GAT, GIN, GINE, GCNII, GatedGCN, GT]
N, PAIRS = GRAPHS[0]
every_model = pytest.mark.parametrize("kind", CLASSIC, ids=lambda kind: kind.__name__)


def model(kind: type[LayeredModel], num_layers: int = 3, **options: Any) -> LayeredModel:
    return drawn(kind(4, 6, 2, num_layers, **options)).eval()


class Doubling(nn.Module):
    """A step with nothing to learn but a factor, which starts at 2."""

    def __init__(self, activation: str) -> None:
        super().__init__()
        self.factor = nn.Parameter(torch.full((), 2.0))
        self.activation = activation

    def reset_parameters(self) -> None:
        nn.init.constant_(self.factor, 2.0)

    def forward(self, h: Tensor, adj: Adjacency) -> Tensor:
        return ACTIVATIONS[self.activation](self.factor * h)


class DoublingModel(LayeredModel):
    def make_step(self, layer: int) -> Doubling:
        return Doubling(self.activation)


def doubled(h: Tensor, num_layers: int = 3, **options: Any) -> Tensor:
    """States after some layers of doubling, undecoded."""
    layered = DoublingModel(4, 4, 2, num_layers, **options).double()
    layered.train(options.get("conv_dropout", 0) > 0)
    layered.decoder = nn.Identity()  # type: ignore[assignment]
    return layered.evolve(h, adjacency(h.size(0), []))[0].detach()


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize(("residual", "factor"), [(False, 8), (True, 27)])
def test_a_residual_connection_adds_the_input(shared: bool, residual: bool, factor: int) -> None:
    h = states(5).abs()
    assert torch.allclose(doubled(h, residual=residual, shared=shared), factor * h)


def test_the_norm_comes_after_the_activation() -> None:
    h = states(5)
    layer = torch.nn.functional.layer_norm((2 * h).relu(), (4,))
    assert torch.allclose(doubled(h, 1, conv_norm="layer"), layer)
    assert torch.allclose(doubled(h, 1, conv_norm="layer", residual=True), h + layer)
    frozen = (2 * h).relu() / np.sqrt(1 + 1e-5)  # the statistics of a fresh batch norm: 0 and 1
    assert torch.allclose(doubled(h, 1, conv_norm="batch"), frozen)


def test_dropout_acts_on_what_a_layer_adds() -> None:
    torch.manual_seed(0)
    h = torch.ones(200, 4, dtype=torch.float64)
    out = doubled(h, 1, conv_dropout=0.5, residual=True)
    assert set(out.unique().tolist()) == {1.0, 5.0}
    assert 0.3 < (out == 1).double().mean() < 0.7


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_the_activation_is_the_one_named(activation: str) -> None:
    h = states(5)
    assert torch.equal(doubled(h, 1, activation=activation), ACTIVATIONS[activation](2 * h))


@every_model
def test_every_model_has_the_layers_its_steps_make(kind: type[LayeredModel]) -> None:
    built = model(kind, activation="tanh", conv_norm="layer")
    adj, h = adjacency(N, PAIRS), states(N, 6)
    expected = h
    for layer in built.layers:
        out = layer.get_submodule("step")(expected, adj, *([h] if kind is GCNII else []))
        norm = layer.get_submodule("norm")
        out = nn.functional.layer_norm(out, (6,), norm.weight, norm.bias)  # type: ignore[arg-type]
        expected = out
    assert torch.allclose(built.evolve(h, adj)[0], built.decoder(expected), atol=1e-12)


@pytest.mark.parametrize(("n", "pairs"), GRAPHS)
@pytest.mark.parametrize("kind", [GCNStep, SAGEStep, GINStep, GCNIIStep])
def test_a_step_is_pygs_layer(kind: Any, n: int, pairs: Pairs) -> None:
    rates = (0.1, 0.5, 1) if kind is GCNIIStep else ()  # alpha, theta, layer
    step, h, adj = drawn(kind(4, "tanh", *rates)), states(n), adjacency(n, pairs)
    inputs = (states(n, seed=9),) if kind is GCNIIStep else ()
    expected = step.conv(h, *inputs, adj.edge_index).tanh()
    assert torch.allclose(step(h, adj, *inputs), expected, atol=1e-12)


@every_model
def test_shared_weights_are_those_of_one_layer(kind: type[LayeredModel]) -> None:
    one, shared, several = model(kind, 1), model(kind, shared=True), model(kind)
    count = [sum(p.numel() for p in built.parameters()) for built in (one, shared, several)]
    layer = sum(p.numel() for p in one.layers.parameters())
    assert count == [count[0], count[0], count[0] + 2 * layer]
