from __future__ import annotations

import torch

from eegnn import EEGNN, Adjacency
from eegnn.bench.inputs import predict_with_fixed_exits
from tests.bench.inputs import small_graph


def test_nodes_leave_at_the_given_layers() -> None:
    graph, layer = small_graph(), torch.arange(200) % 6 + 1
    model = EEGNN(4, 8, 2, num_layers=6)
    for _ in range(2):
        _, exits = predict_with_fixed_exits(model, graph.x, graph.adj, layer)
        assert torch.equal(exits.layer, layer)


def test_graphs_leave_at_the_given_layers() -> None:
    batch = torch.arange(5).repeat_interleave(4)
    adj = Adjacency.from_edge_index(torch.zeros(2, 0).long(), 20, batch)
    layer = torch.tensor([1, 6, 3, 5, 6])
    model = EEGNN(4, 8, 2, num_layers=6, level="graph")
    _, exits = predict_with_fixed_exits(model, torch.rand(20, 4), adj, layer)
    assert torch.equal(exits.layer, layer)


def test_the_loop_ends_when_the_last_node_has_left() -> None:
    graph, model = small_graph(), EEGNN(4, 8, 2, num_layers=6)
    _, exits = predict_with_fixed_exits(model, graph.x, graph.adj, torch.full((200,), 3))
    assert exits.tau.size(0) == 3
