"""Layers and models take graphs as PyG's do."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric import EdgeIndex
from torch_geometric.nn import (
    GATConv,
    GCNConv,
    GINEConv,
    GraphConv,
    HeteroConv,
    SAGEConv,
    Sequential,
    to_hetero,
)

from eegnn import EEGNN, Adjacency, EarlyExit, SASConv
from eegnn.nn.heads import MLP, Confidence, MeanGNN, Temperature
from eegnn.zoo.gat import GAT
from eegnn.zoo.sage import GraphSAGE

#: Both directions of four edges and a path of three nodes, in no order.
EDGES = torch.tensor([[4, 0, 1, 2, 3, 1, 0, 2], [1, 1, 0, 3, 2, 4, 2, 0]])
ONE_WAY = torch.tensor([[4, 0, 2], [1, 1, 3]])
N, WIDTH = 5, 4
SIGNS = torch.tensor([1.0, 0.0])


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


def loop(step: Any, num_layers: int = 1, **options: Any) -> EarlyExit:
    confidence = Confidence(MeanGNN(WIDTH, 4, 2))
    return EarlyExit(step, confidence, Temperature(MLP(WIDTH, 4, 1)), num_layers, **options)


def weights(count: int = EDGES.size(1)) -> Tensor:
    return torch.rand(count)


@pytest.mark.parametrize("make", [lambda: SASConv(WIDTH), lambda: loop(SASConv(WIDTH), 3).eval()])
def test_a_layer_takes_an_edge_list_as_well_as_an_adjacency(make: Any) -> None:
    layer, h = make(), torch.randn(N, WIDTH)
    truth = layer(h, Adjacency.from_edge_index(EDGES, N))
    for edge_index in (EDGES, EdgeIndex(EDGES, sparse_size=(N, N))):
        found = layer(h, edge_index)
        pairs = (
            zip(found[:1], truth[:1], strict=True) if isinstance(found, tuple) else [(found, truth)]
        )
        assert all(torch.equal(a, b) for a, b in pairs)


def test_layers_work_in_sequential_and_hetero_conv() -> None:
    conv, exit_loop, h = (
        SASConv(WIDTH),
        loop(SAGEConv(WIDTH, WIDTH), 3).eval(),
        torch.randn(N, WIDTH),
    )
    model = Sequential(
        "x, edge_index",
        [
            (conv, "x, edge_index -> x"),
            (exit_loop, "x, edge_index -> x, exits"),
            (nn.Identity(), "x -> x"),
        ],
    )
    assert torch.equal(model(h, EDGES), exit_loop(conv(h, EDGES), EDGES)[0])
    kind = ("node", "to", "node")
    found = HeteroConv({kind: conv})({"node": h}, {kind: EDGES})
    assert torch.equal(found["node"], conv(h, EDGES))


def test_edges_between_two_types_of_nodes_are_refused() -> None:
    h = torch.randn(N, WIDTH)
    with pytest.raises(TypeError, match=r"SASConv needs edges between nodes of one type"):
        SASConv(WIDTH)((h, h), EDGES)


@pytest.mark.parametrize("model", [EEGNN(WIDTH, 8, 2, num_layers=2), SASConv(WIDTH)])
def test_to_hetero_is_told_of_to_homogeneous(model: nn.Module) -> None:
    with pytest.raises(TypeError, match=r"to_homogeneous"):
        to_hetero(model, (["node"], [("node", "to", "node")]))


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize(
    "conv",
    [
        GINEConv(nn.Linear(WIDTH, WIDTH), edge_dim=3),
        GATConv(WIDTH, WIDTH, edge_dim=3),
    ],
)
def test_edge_features_reach_a_convolution_beside_their_edges(conv: Any, directed: bool) -> None:
    edges = ONE_WAY if directed else EDGES
    h, attr = torch.randn(N, WIDTH), torch.randn(edges.size(1), 3)
    adj = Adjacency.from_edge_index(edges, N, directed=directed)
    found, _ = loop(conv, step_size=1.0)(h, adj, attr)
    torch.testing.assert_close(found, h + conv(h, edges, attr))


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("conv", [GCNConv(WIDTH, WIDTH), GraphConv(WIDTH, WIDTH)])
def test_weights_reach_a_convolution_and_get_its_gradients(conv: Any, directed: bool) -> None:
    edges = ONE_WAY if directed else EDGES
    h, weight = torch.randn(N, WIDTH), weights(edges.size(1)).requires_grad_()
    adj = Adjacency.from_edge_index(edges, N, directed=directed)
    found, _ = loop(conv, step_size=1.0)(h, adj, edge_weight=weight)
    truth = h + conv(h, edges, weight)
    torch.testing.assert_close(found, truth)
    grads = (torch.autograd.grad(out.sin().sum(), weight)[0] for out in (found, truth))
    torch.testing.assert_close(*grads)


def test_a_convolution_without_weights_refuses_them() -> None:
    with pytest.raises(ValueError, match=r"edge_weight was given, but SAGEConv does not take it"):
        loop(SAGEConv(WIDTH, WIDTH))(torch.randn(N, WIDTH), EDGES, edge_weight=weights())


@pytest.mark.parametrize("directed", [False, True])
def test_edge_features_follow_graphs_that_stay_in_the_batch(directed: bool) -> None:
    """Evaluation drops graphs that have left: those that stay keep the features of their edges."""
    conv = GINEConv(nn.Linear(WIDTH, WIDTH), edge_dim=3)
    temperature = Temperature(MLP(WIDTH, 4, 1))
    exit_loop = EarlyExit(conv, lambda h, adj: h[:, :2] * SIGNS, temperature, 6, "graph").eval()
    edges = ONE_WAY if directed else EDGES
    graphs = [
        (torch.randn(N, WIDTH) + shift, torch.randn(edges.size(1), 3)) for shift in (-9, 9, 3)
    ]
    alone = [
        exit_loop(h, Adjacency.from_edge_index(edges, N, directed=directed), attr)[0]
        for h, attr in graphs
    ]
    together = torch.cat([edges + N * i for i in range(3)], dim=1)
    batch = torch.arange(3).repeat_interleave(N)
    adj = Adjacency.from_edge_index(together, 3 * N, batch, directed=directed)
    h, attr = (torch.cat(parts) for parts in zip(*graphs, strict=True))
    with torch.no_grad():
        out, exits = exit_loop(h, adj, attr)
    assert exits.backend == "pruned"
    assert exits.layer.min() < exits.layer.max()
    torch.testing.assert_close(out, torch.cat(alone).detach())


@pytest.mark.parametrize("recompute", [False, True])
def test_a_model_differentiates_weights_on_every_path(recompute: bool) -> None:
    model = EEGNN(WIDTH, 8, 2, num_layers=3, recompute=recompute).double().eval()
    x, weight = torch.randn(N, WIDTH).double(), weights().double().requires_grad_()
    assert torch.autograd.gradcheck(lambda w: model(x, EDGES, edge_weight=w), (weight,))
    torch.testing.assert_close(
        model.predict(x, EDGES, edge_weight=weight)[0], model(x, EDGES, edge_weight=weight).detach()
    )


def test_pruned_evaluation_reads_the_same_nodes_whatever_the_weights() -> None:
    """Weights that underflow in a few hops must not hide nodes that are needed."""
    n = 3000
    path = torch.stack([torch.arange(n - 1), torch.arange(1, n)])
    edges = torch.cat([path, path.flip(0)], dim=1)
    weight = torch.full((edges.size(1),), 1e-20)
    weight[: n - 1] = 1.0
    model = EEGNN(WIDTH, 8, 2, num_layers=6, continue_bias=None).eval()
    x = torch.randn(n, WIDTH)
    found, exits = model.predict(x, edges, edge_weight=weight)
    assert exits.backend == "pruned"
    torch.testing.assert_close(found, model(x, edges, edge_weight=weight).detach())


def test_batch_in_the_place_of_edge_attr_is_named() -> None:
    model, x = EEGNN(WIDTH, 8, 2, num_layers=2), torch.randn(N, WIDTH)
    with pytest.raises(
        ValueError, match=r"if this is batch, call model\(x, edge_index, batch=batch\)"
    ):
        model(x, EDGES, torch.zeros(N, dtype=torch.int64))
    with pytest.raises(ValueError, match=r"edge_weight=edge_weight"):
        model(x, EDGES, weights())


def test_a_graph_without_nodes_at_the_end_is_not_lost() -> None:
    model = EEGNN(WIDTH, 8, 2, num_layers=2, level="graph").eval()
    x, batch = torch.randn(N, WIDTH), torch.zeros(N, dtype=torch.int64)
    assert model(x, EDGES, batch=batch, batch_size=3).shape == (3, 2)
    assert model.predict(x, EDGES, batch=batch, batch_size=3)[1].layer.shape == (3,)
    torch.testing.assert_close(
        model(x, EDGES, batch=batch, batch_size=3)[:1], model(x, EDGES, batch=batch)
    )


def test_models_say_whether_they_take_weights_and_directions() -> None:
    x, directed = torch.randn(N, WIDTH), Adjacency.from_edge_index(ONE_WAY, N, directed=True)
    with pytest.raises(ValueError, match=r"GAT does not take it"):
        GAT(WIDTH, 8, 2, num_layers=2)(x, EDGES, edge_weight=weights())
    with pytest.raises(ValueError, match=r"EEGNN needs an undirected graph"):
        EEGNN(WIDTH, 8, 2, num_layers=2)(x, directed)
    with pytest.raises(ValueError, match=r"SAS-GNN needs an undirected graph"):
        SASConv(8)(torch.randn(N, 8), directed)
    model = GraphSAGE(WIDTH, WIDTH, 2, num_layers=1)
    conv = model.layers[0].step.conv  # type: ignore[union-attr]
    h = model.encoder(x)
    torch.testing.assert_close(model(x, directed), model.decoder(conv(h, ONE_WAY).relu()))  # type: ignore[operator]
