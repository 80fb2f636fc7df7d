"""What a model must not depend on: the order of nodes and edges, its company in a batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from eegnn import Adjacency
from tests.nn.model_examples import (
    EDGE_INDEX,
    KINDS,
    NO_EDGES,
    NUM_NODES,
    PATH,
    build,
    edge_features,
    features,
)


@pytest.mark.parametrize("level", ["node", "graph"])
@pytest.mark.parametrize("kind", KINDS)
def test_permuting_nodes_permutes_outputs_and_exits(kind: str, level: str) -> None:
    model = build(kind, level=level, edge_dim=2).double().eval()
    x, attr = features().double(), edge_features().double()
    order = torch.randperm(NUM_NODES, generator=torch.Generator().manual_seed(2))
    place = order.argsort()  # node i of the original is node place[i] of the other
    out, exits = model(x, EDGE_INDEX, attr, return_exits=True)
    other, other_exits = model(x[order], place[EDGE_INDEX], attr, return_exits=True)
    if level == "node":
        out, layer, time = out[order], exits.layer[order], exits.time[order]
    else:
        layer, time = exits.layer, exits.time
    torch.testing.assert_close(other, out)
    assert torch.equal(other_exits.layer, layer)
    torch.testing.assert_close(other_exits.time, time)


@pytest.mark.parametrize("kind", [k for k in KINDS if k != "SASGNN"])
def test_units_of_the_models_under_test_leave_at_different_layers(kind: str) -> None:
    _, exits = build(kind).predict(features(), EDGE_INDEX)
    assert exits.layer.unique().numel() >= 2


@pytest.mark.parametrize("kind", [k for k in KINDS if k != "SASGNN"])
def test_who_left_moves_on_only_with_evolve(kind: str) -> None:
    _, exits = build(kind).predict(features(), EDGE_INDEX)
    step = torch.arange(exits.tau.size(0)).unsqueeze(-1)
    after = step >= exits.layer
    assert after.any()
    assert (exits.tau[~after] > 0).all()
    assert bool((exits.tau[after] > 0).any()) is kind.endswith("evolve")
    torch.testing.assert_close(exits.time, exits.tau.masked_fill(after, 0.0).sum(0))


@pytest.mark.parametrize("level", ["node", "graph"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_order_of_edges_does_not_matter(kind: str, level: str) -> None:
    model = build(kind, level=level, edge_dim=2).double().eval()
    x, attr = features().double(), edge_features().double()
    order = torch.randperm(EDGE_INDEX.size(1), generator=torch.Generator().manual_seed(2))
    torch.testing.assert_close(
        model(x, EDGE_INDEX[:, order], attr[order]), model(x, EDGE_INDEX, attr)
    )


PAIR = torch.tensor([[0, 1], [1, 0]])
GRAPHS = [(3, PATH), (2, PAIR), (2, NO_EDGES), (1, NO_EDGES), (4, PATH), (2, PAIR)]


def batched() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    x = torch.cat([features(n, seed=g) for g, (n, _) in enumerate(GRAPHS)])
    attr = torch.cat([edge_features(e.size(1), seed=g) for g, (_, e) in enumerate(GRAPHS)])
    start = np.cumsum([0, *(n for n, _ in GRAPHS)])
    edge_index = torch.cat([e + int(s) for (_, e), s in zip(GRAPHS, start, strict=False)], dim=1)
    batch = torch.repeat_interleave(torch.arange(len(GRAPHS)), torch.tensor([n for n, _ in GRAPHS]))
    return x, edge_index, attr, batch


@pytest.mark.parametrize("pool", ["mean", "add", "max"])
@pytest.mark.parametrize("kind", [*KINDS, "EEGNN mean head", "EEGNN sas head"])
def test_a_batch_of_graphs_equals_its_graphs_one_by_one(kind: str, pool: str) -> None:
    options: dict[str, Any] = {"level": "graph", "edge_dim": 2, "edge_term": "linear", "pool": pool}
    if kind.endswith("head"):
        options["confidence"], kind = kind.split()[1], "EEGNN"
    model = build(kind, **options).double().eval()
    x, edge_index, attr, batch = batched()
    out, exits = model(x.double(), edge_index, attr.double(), batch, return_exits=True)
    assert out.shape == (len(GRAPHS), 3)
    if kind != "SASGNN":
        assert exits.layer.unique().numel() >= 2  # some graphs are dropped before others
    for g, (n, edges) in enumerate(GRAPHS):
        own, left = model(
            features(n, seed=g).double(),
            edges,
            edge_features(edges.size(1), seed=g).double(),
            return_exits=True,
        )
        torch.testing.assert_close(out[g : g + 1], own)
        assert exits.layer[g] == left.layer[0]
        torch.testing.assert_close(exits.time[g], left.time[0])


@pytest.mark.parametrize("kind", KINDS)
def test_node_predictions_in_a_batch_equal_those_alone(kind: str) -> None:
    model = build(kind, edge_dim=2).double().eval()
    x, edge_index, attr, batch = batched()
    out = model(x.double(), edge_index, attr.double(), batch)
    alone = [
        model(features(n, seed=g).double(), edges, edge_features(edges.size(1), seed=g).double())
        for g, (n, edges) in enumerate(GRAPHS)
    ]
    torch.testing.assert_close(out, torch.cat(alone))


@pytest.mark.parametrize("kind", KINDS)
def test_components_of_a_graph_do_not_see_each_other(kind: str) -> None:
    model = build(kind).double().eval()
    x = features().double()
    out = model(x, EDGE_INDEX)
    torch.testing.assert_close(out[4:6], model(x[4:6], PAIR))
    torch.testing.assert_close(out[6:7], model(x[6:7], NO_EDGES))


@pytest.mark.parametrize("kind", KINDS)
def test_an_edge_list_and_an_adjacency_give_the_same_bits(kind: str) -> None:
    model = build(kind, level="graph").eval()
    x, edge_index, _, batch = batched()
    adj = Adjacency.from_edge_index(edge_index, x.size(0), batch)
    assert torch.equal(model(x, adj), model(x, edge_index, batch=batch))


@pytest.mark.parametrize("kind", KINDS)
def test_a_change_of_the_edge_list_in_place_is_seen(kind: str) -> None:
    model = build(kind).eval()
    x, edge_index = features(), EDGE_INDEX.clone()
    before = model(x, edge_index)
    edge_index.fill_(0)
    after = model(x, edge_index)
    assert not torch.equal(before, after)
    assert torch.equal(after, model(x, NO_EDGES))
