from __future__ import annotations

from typing import get_args

import networkx as nx  # type: ignore[import-untyped]
import pytest
import torch

from eegnn.data.transfer import TransferGraph, transfer

KINDS = pytest.mark.parametrize("kind", get_args(TransferGraph))


@KINDS
@pytest.mark.parametrize("distance", [3, 5, 10, 50])
def test_source_and_target_are_as_far_apart_as_in_the_original(
    kind: TransferGraph, distance: int
) -> None:
    graph = transfer(kind, distance, size=0.001).graphs[0]
    target = int(graph.y.view(-1).argmax())
    network = nx.Graph(graph.edge_index.t().tolist())
    hops = distance - 1 if kind == "line" else distance
    assert len(network) == (distance if kind == "line" else 2 * distance)
    assert nx.shortest_path_length(network, 0, target) == hops
    assert graph.is_undirected()
    assert graph.is_coalesced()
    assert nx.number_of_selfloops(network) == (distance if kind == "line" else 0)


def test_a_crossed_ring_has_these_edges() -> None:
    graph = transfer("crossed-ring", 3, size=0.001).graphs[0]
    ring = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (0, 5)]
    wanted = {*ring, (1, 4), (2, 5)}
    assert {(a, b) for a, b in graph.edge_index.t().tolist() if a < b} == wanted


@KINDS
def test_source_and_target_swap_and_the_others_stay(kind: TransferGraph) -> None:
    for graph in transfer(kind, 4, size=0.01).graphs:
        target = int(graph.y.view(-1).argmax())
        assert (graph.x[0], graph.x[target]) == (1, 0)
        assert (graph.y[0], graph.y[target]) == (0, 1)
        changed = torch.nonzero(graph.x.view(-1) != graph.y.view(-1)).view(-1).tolist()
        assert changed == sorted([0, target])


def test_parts_have_their_sizes_and_different_graphs() -> None:
    problem = transfer("ring", 5)
    assert [len(part) for part in (problem.train, problem.val, problem.test)] == [1000, 100, 100]
    assert (problem.level, problem.task, problem.metric) == ("node", "regression", "mse")
    assert problem.inductive
    features = {tuple(graph.x.view(-1).tolist()) for graph in problem.graphs}
    assert len(features) == 1200  # validation is not the test again


def test_seed_decides_the_graphs() -> None:
    a, b, c = (transfer("line", 5, size=0.01, seed=seed).graphs[0].x for seed in (0, 0, 1))
    assert torch.equal(a, b)
    assert not torch.equal(a, c)


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match="kind must be one of 'line', 'ring', 'crossed-ring'"):
        transfer("star", 5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="distance must be at least 3, got 2"):
        transfer("ring", 2)
    with pytest.raises(ValueError, match="size must be"):
        transfer("ring", 3, size=1.5)
