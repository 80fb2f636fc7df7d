from __future__ import annotations

from typing import Any

import pytest
import torch
from torch_geometric.data import Batch, Data

from eegnn.nn.early_exit import EarlyExit
from eegnn.zoo.early import EEModel
from eegnn.zoo.gat import GAT
from eegnn.zoo.gcn import GCN
from eegnn.zoo.gin import GIN
from eegnn.zoo.layered import LayeredModel
from eegnn.zoo.registry import ENTRIES, STEPS, find
from eegnn.zoo.sage import GraphSAGE
from tests.graphs import both_ways
from tests.nn.model_examples import count, lively
from tests.zoo.examples import GRAPHS, adjacency, states

N, PAIRS = GRAPHS[0]
every_backbone = pytest.mark.parametrize("backbone", STEPS)


def model(backbone: str, num_layers: int = 5, seed: int = 0, **options: Any) -> EEModel:
    torch.manual_seed(seed)
    built = EEModel(4, 6, 2, num_layers, backbone=backbone, **options)
    return built.double().eval()


@every_backbone
def test_nodes_take_steps_of_the_backbone_and_are_decoded_where_they_leave(backbone: str) -> None:
    x, adj = states(N), adjacency(N, PAIRS)
    with torch.no_grad():
        for seed in range(10):  # until nodes leave at different layers
            built = lively(model(backbone, seed=seed))
            out, exits = built(x, adj, return_exits=True)
            if len(exits.layer.unique()) > 1:
                break
        assert len(exits.layer.unique()) > 1
        h = built.encoder(x)
        trajectory = [h]
        for tau in exits.tau:
            h = h + tau.unsqueeze(-1) * built.loop.step(h, adj)
            trajectory.append(h)
        left = torch.stack([trajectory[layer][i] for i, layer in enumerate(exits.layer)])
        assert torch.allclose(out, built.decoder(left), atol=1e-12)


@pytest.mark.parametrize(
    ("backbone", "kind"), [("gcn", GCN), ("sage", GraphSAGE), ("gat", GAT), ("gin", GIN)]
)
@pytest.mark.parametrize("activation", ["relu", "relu_tanh"])
@pytest.mark.parametrize("shared", [True, False])
def test_who_never_leaves_has_a_residual_model(
    backbone: str, kind: type[LayeredModel], activation: str, shared: bool
) -> None:
    options: dict[str, Any] = {"activation": activation, "shared": shared}
    built = model(backbone, step_size=1.0, continue_bias=100.0, **options)
    plain = kind(4, 6, 2, 5, residual=True, **options).double().eval()
    plain.encoder, plain.decoder = built.encoder, built.decoder
    steps = [built.loop.step] if shared else list(built.loop.step)
    for layer, step in zip(plain.layers, steps, strict=True):
        layer.step = step
    x, adj = states(N), adjacency(N, PAIRS)
    out, exits = built(x, adj, return_exits=True)
    assert exits.layer.tolist() == [5] * N
    assert torch.allclose(out, plain(x, adj), atol=1e-12)


@every_backbone
def test_a_batch_of_graphs_equals_its_graphs_one_by_one(backbone: str) -> None:
    built = lively(model(backbone, level="graph"))
    several = [
        Data(x=states(n, seed=n), edge_index=both_ways(pairs), num_nodes=n) for n, pairs in GRAPHS
    ]
    batch = Batch.from_data_list(several)
    with torch.no_grad():
        together, exits = built(batch.x, batch.edge_index, batch=batch.batch, return_exits=True)
        alone = torch.cat([built(graph.x, graph.edge_index) for graph in several])
    assert torch.allclose(together, alone, atol=1e-10)
    assert exits.layer.numel() == len(GRAPHS)


@every_backbone
def test_training_reaches_every_weight_of_the_step(backbone: str) -> None:
    built = model(backbone).train()
    built(states(N), adjacency(N, PAIRS)).square().sum().backward()
    assert [name for name, p in built.named_parameters() if p.grad is None] == []
    assert all(p.grad is not None and p.grad.isfinite().all() for p in built.parameters())


@every_backbone
def test_the_backbone_is_the_step_that_is_repeated(backbone: str) -> None:
    built = model(backbone)
    assert isinstance(built.loop, EarlyExit)
    assert type(built.loop.step) is find(ENTRIES[backbone].home).step
    assert built.config["backbone"] == backbone


@every_backbone
def test_the_activation_reaches_the_step(backbone: str) -> None:
    assert model(backbone, activation="relu_tanh").loop.step.activation == "relu_tanh"


def test_weights_are_shared_unless_asked_otherwise() -> None:
    step = 6 * 6 + 6
    assert count(model("gcn", 9)) == count(model("gcn", 2))
    assert count(model("gcn", 9, shared=False)) == count(model("gcn", 9)) + 8 * step


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"backbone": "mlp"}, "backbone must be one of 'gcn', .* got 'mlp'"),
        ({"backbone": "gcn", "activation": "gelu"}, "activation must be one of .* got 'gelu'"),
        ({"backbone": "gcn", "shared": 1}, "shared must be True or False, got 1"),
        ({"backbone": "gcn", "edge_dim": 2}, "EEModel takes no edge features"),
        ({"backbone": "gcn", "num_layers": 0}, "num_layers must be at least 1, got 0"),
    ],
    ids=str,
)
def test_bad_options_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        model(**options)
