from __future__ import annotations

import warnings

import pytest
import torch

from eegnn import EEGNN, SASGNN, Adjacency
from eegnn.nn.model import GraphModel
from tests.nn.model_examples import (
    BOTH,
    EDGE_INDEX,
    KINDS,
    NO_EDGES,
    PATH,
    build,
    edge_features,
    features,
)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("level", ["node", "graph"])
@pytest.mark.parametrize("n", [0, 1, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_graphs_without_edges_work(kind: str, n: int, level: str, training: bool) -> None:
    model = build(kind, level=level).train(training)
    out, exits = model(features(n), NO_EDGES, return_exits=True)
    units = n if level == "node" else 1
    assert out.shape == (units, 3)
    assert exits.layer.shape == exits.time.shape == (units,)
    assert exits.tau.shape[1] == units
    assert out.isfinite().all()
    assert exits.cost.isfinite()
    out.sum().backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_without_graphs_works(kind: str, training: bool) -> None:
    model = build(kind, level="graph").train(training)
    out = model(features(0), NO_EDGES, batch=torch.zeros(0, dtype=torch.int64))
    assert out.shape == (0, 3)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_a_graph_without_nodes_may_stand_in_a_batch(kind: str, training: bool) -> None:
    model = build(kind, level="graph").train(training)
    out = model(features(3), PATH, batch=torch.tensor([1, 1, 1]))
    assert out.shape == (2, 3)
    assert out.isfinite().all()


@pytest.mark.parametrize("level", ["node", "graph"])
@pytest.mark.parametrize("model", [SASGNN, EEGNN])
def test_graphs_without_features_work(model: type[GraphModel], level: str) -> None:
    torch.manual_seed(0)
    net = model(0, 8, 3, 4, level=level)  # type: ignore[arg-type]
    out = net(None, PATH)
    assert out.shape == (3 if level == "node" else 1, 3)
    torch.testing.assert_close(net.eval()(torch.zeros(3, 0), PATH), net(None, PATH))
    adj = Adjacency.from_edge_index(PATH, 5)
    assert net(None, adj).shape == (5 if level == "node" else 1, 3)
    out.sum().backward()
    assert net.encoder.bias.grad is not None


@pytest.mark.parametrize("kind", BOTH)
def test_a_directed_edge_list_warns_once_and_is_used_both_ways(kind: str) -> None:
    model = build(kind).eval()
    directed = torch.tensor([[0, 1], [1, 2]])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        out = model(features(3), directed)
        again = model(features(3), directed)
    assert [w.category for w in caught] == [UserWarning]
    assert "edge_index is directed" in str(caught[0].message)
    assert caught[0].filename == __file__
    assert torch.equal(out, again)
    torch.testing.assert_close(out, model(features(3), PATH))


@pytest.mark.parametrize("kind", BOTH)
def test_self_loops_change_nothing(kind: str) -> None:
    model = build(kind, edge_dim=2).eval()
    loops = torch.cat([EDGE_INDEX, torch.tensor([[0, 6], [0, 6]])], dim=1)
    attr = edge_features()
    with_loops = torch.cat([attr, torch.full((2, 2), 100.0)])
    torch.testing.assert_close(
        model(features(), loops, with_loops), model(features(), EDGE_INDEX, attr)
    )
