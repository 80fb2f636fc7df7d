from __future__ import annotations

import torch

from eegnn import EEGNN, Adjacency
from eegnn.bench.shapes import skewed_graph
from eegnn.bench.stated import StatedExits


def test_nodes_leave_when_they_are_told_to() -> None:
    adj, stated = Adjacency.from_edge_index(skewed_graph(200, 600), 200), torch.arange(200) % 6 + 1
    way = StatedExits(EEGNN(4, 8, 2, num_layers=6), torch.rand(200, 4), adj, stated)
    for _ in range(2):
        _, exits = way()
        assert torch.equal(exits.layer, stated)


def test_graphs_leave_when_they_are_told_to() -> None:
    batch = torch.arange(5).repeat_interleave(4)
    adj = Adjacency.from_edge_index(torch.zeros(2, 0).long(), 20, batch)
    stated = torch.tensor([1, 6, 3, 5, 6])
    model = EEGNN(4, 8, 2, num_layers=6, level="graph")
    _, exits = StatedExits(model, torch.rand(20, 4), adj, stated)()
    assert torch.equal(exits.layer, stated)


def test_the_loop_ends_when_the_last_one_has_left() -> None:
    adj = Adjacency.from_edge_index(skewed_graph(50, 100), 50)
    way = StatedExits(EEGNN(4, 8, 2, num_layers=6), torch.rand(50, 4), adj, torch.full((50,), 3))
    assert way()[1].tau.size(0) == 3
