"""What holds for all classic models."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data

from eegnn.graph import Adjacency
from eegnn.nn.activations import ACTIVATIONS
from eegnn.zoo.gat import GAT
from eegnn.zoo.gatedgcn import GatedGCN
from eegnn.zoo.gcn import GCN
from eegnn.zoo.gcnii import GCNII
from eegnn.zoo.gin import GIN
from eegnn.zoo.gine import GINE
from eegnn.zoo.gt import GT
from eegnn.zoo.layered import LayeredModel
from eegnn.zoo.sage import GraphSAGE
from tests.graphs import both_ways
from tests.zoo.examples import GRAPHS, adjacency, drawn, states

CLASSIC = [GCN, GraphSAGE, GAT, GIN, GINE, GCNII, GatedGCN, GT]
N, PAIRS = GRAPHS[0]
every_model = pytest.mark.parametrize("kind", CLASSIC, ids=lambda kind: kind.__name__)
edge_models = pytest.mark.parametrize("kind", [GINE, GatedGCN, GT], ids=lambda kind: kind.__name__)


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
    built, adj, h = (
        model(kind, activation="tanh", conv_norm="layer"),
        adjacency(N, PAIRS),
        states(N, 6),
    )
    expected = h
    for layer in built.layers:
        out = layer.get_submodule("step")(expected, adj, *([h] if kind is GCNII else []))
        norm = layer.get_submodule("norm")
        out = nn.functional.layer_norm(out, (6,), norm.weight, norm.bias)  # type: ignore[arg-type]
        expected = out
    assert torch.allclose(built.evolve(h, adj)[0], built.decoder(expected), atol=1e-12)


@every_model
def test_nodes_may_be_numbered_in_any_order(kind: type[LayeredModel]) -> None:
    built, x, order = model(kind), states(N), torch.tensor([3, 0, 6, 1, 5, 2, 4])
    place = order.argsort()
    moved = [(int(place[u]), int(place[v])) for u, v in PAIRS]
    expected = built(x, adjacency(N, PAIRS))[order]
    assert torch.allclose(built(x[order], adjacency(N, moved)), expected, atol=1e-10)


@every_model
@pytest.mark.parametrize("level", ["node", "graph"])
def test_a_batch_equals_its_graphs_one_by_one(kind: type[LayeredModel], level: str) -> None:
    built = model(kind, level=level)
    several = [
        Data(x=states(n, seed=n), edge_index=both_ways(pairs), num_nodes=n) for n, pairs in GRAPHS
    ]
    batch = Batch.from_data_list(several)
    together = built(batch.x, batch.edge_index, batch=batch.batch)
    alone = [built(graph.x, graph.edge_index) for graph in several]
    assert torch.allclose(together, torch.cat(alone), atol=1e-10)


@every_model
def test_every_weight_gets_its_gradient(kind: type[LayeredModel]) -> None:
    built = model(kind, 2, activation="tanh", conv_norm="layer", residual=True)
    built(states(N), adjacency(N, PAIRS)).square().sum().backward()
    without = [name for name, p in built.named_parameters() if p.grad is None or not p.grad.any()]
    # All keys are shifted alike, which a softmax does not see.
    assert [name for name in without if not name.endswith("lin_key.bias")] == []


@every_model
def test_the_gradient_is_the_slope(kind: type[LayeredModel]) -> None:
    built, adj = model(kind, 2, activation="tanh"), adjacency(N, PAIRS)
    x = states(N).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: built(x, adj), x, fast_mode=True)


@every_model
def test_graphs_without_features_work(kind: type[LayeredModel]) -> None:
    built = drawn(kind(0, 6, 2, 2))
    out = built(None, adjacency(N, PAIRS))
    assert out.shape == (N, 2)
    assert torch.allclose(out[0], out[1])  # two corners of a triangle, alike


@every_model
def test_a_graph_without_nodes_works(kind: type[LayeredModel]) -> None:
    assert model(kind)(states(0), adjacency(0, [])).shape == (0, 2)


@every_model
def test_shared_weights_are_those_of_one_layer(kind: type[LayeredModel]) -> None:
    one, shared, several = model(kind, 1), model(kind, shared=True), model(kind)
    count = [sum(p.numel() for p in built.parameters()) for built in (one, shared, several)]
    layer = sum(p.numel() for p in one.layers.parameters())
    assert count == [count[0], count[0], count[0] + 2 * layer]


@every_model
def test_reset_draws_all_weights_anew(kind: type[LayeredModel]) -> None:
    built = model(kind, conv_norm="batch")
    before = {name: weight.clone() for name, weight in built.named_parameters()}
    built.reset_parameters()
    assert [name for name, p in built.named_parameters() if torch.equal(p, before[name])] == []


@every_model
def test_low_precision_keeps_its_states_in_full(kind: type[LayeredModel]) -> None:
    built = model(kind).float()
    full = built(states(N).float(), adjacency(N, PAIRS)).detach()
    with torch.autocast("cpu", torch.bfloat16):
        low = built(states(N).float(), adjacency(N, PAIRS)).detach()
    assert torch.allclose(full, low.float(), rtol=0.2, atol=0.1 * float(full.abs().max()))


@edge_models
def test_edge_features_reach_the_prediction(kind: type[LayeredModel]) -> None:
    built, edges = model(kind, edge_dim=3), both_ways(PAIRS)
    x, e = states(N), states(edges.size(1), 3, seed=5)
    out = built(x, edges, e)
    assert not torch.allclose(out, built(x, edges, 2 * e))
    assert torch.allclose(out[6], built(x, edges, 2 * e)[6])  # no edge ends at the isolated node
    built(x, edges, e).square().sum().backward()
    assert all(p.grad is not None for p in built.parameters())


@edge_models
def test_missing_edge_features_are_named(kind: type[LayeredModel]) -> None:
    with pytest.raises(ValueError, match="edge_attr is needed: the model has edge_dim=3"):
        model(kind, edge_dim=3)(states(N), both_ways(PAIRS))


@pytest.mark.parametrize("kind", [GCN, GraphSAGE, GAT, GIN, GCNII], ids=lambda kind: kind.__name__)
def test_the_others_take_no_edge_features(kind: type[LayeredModel]) -> None:
    with pytest.raises(ValueError, match=f"{kind.__name__} takes no edge features"):
        model(kind, edge_dim=3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"residual": 1}, "residual must be True or False, got 1"),
        ({"shared": None}, "shared must be True or False, got None"),
        ({"conv_norm": "group"}, "conv_norm must be one of None, 'layer', 'batch', got 'group'"),
        ({"conv_dropout": 2}, r"conv_dropout must be in \[0, 1\], got 2"),
        ({"activation": "gelu"}, "activation must be one of .* got 'gelu'"),
        ({"edge_dim": 0}, "edge_dim must be at least 1, got 0"),
    ],
    ids=str,
)
def test_bad_options_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        model(GINE, **options)


@pytest.mark.parametrize("kind", [GAT, GT], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize(
    ("heads", "message"),
    [
        (4, "heads must divide the width 6, got 4"),
        (0, "heads must be at least 1, got 0"),
        (1.5, "heads must be an integer, got 1.5"),
    ],
)
def test_bad_numbers_of_heads_are_named(
    kind: type[LayeredModel], heads: object, message: str
) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        model(kind, heads=heads)


@every_model
def test_a_config_builds_the_model_again(kind: type[LayeredModel]) -> None:
    own: dict[str, Any] = {"heads": 2} if kind in (GAT, GT) else {}
    own |= {"alpha": 0.2, "theta": 1.0} if kind is GCNII else {}
    options: dict[str, Any] = {"residual": True, "conv_norm": "layer", "activation": "tanh", **own}
    built = model(kind, **options)
    assert options.items() <= built.config.items()
    again = kind(**built.config).double()
    again.load_state_dict(built.state_dict())
    x, adj = states(N), adjacency(N, PAIRS)
    assert torch.equal(again.eval()(x, adj), built(x, adj))
    assert again.config == built.config
