from __future__ import annotations

import pytest
import torch

from eegnn import Adjacency
from eegnn.engine.blocked import partition
from eegnn.graph import Norm
from tests.engine.blocked.examples import GRAPHS, ring
from tests.transcription import Graph


def within(graph: Graph, nodes: set[int], hops: int) -> set[int]:
    for _ in range(hops):
        nodes = nodes | {j for i in nodes for j in graph.neighbours(i)}
    return nodes


@pytest.mark.parametrize("hops", [1, 2, 3])
@pytest.mark.parametrize("name", GRAPHS)
def test_the_halo_is_exactly_the_neighbourhood(name: str, hops: int) -> None:
    graph = GRAPHS[name](1)
    blocks = partition(graph.edge_index(), graph.num_nodes, 5)
    for index in range(len(blocks)):
        block = blocks.neighborhood(index, hops)
        core, halo = set(block.core.tolist()), block.halo.tolist()
        assert len(halo) == len(set(halo))
        assert set(halo) == within(graph, core, hops) - core
        near = len(core) + blocks[index].halo.numel()  # nearer rings come first
        assert block.nodes[:near].tolist() == blocks[index].nodes.tolist()


def test_so_it_is_where_blocks_are_a_small_part_of_the_graph() -> None:
    graph = ring(n=900)
    for block in partition(graph.edge_index(), 900, 30):
        core = set(block.core.tolist())
        assert 8 * block.adj.num_edges < 900
        assert block.halo.tolist() == sorted(within(graph, core, 1) - core)


@pytest.mark.parametrize("norm", ["sym", "mean", "sum"])
@pytest.mark.parametrize("name", GRAPHS)
def test_what_is_propagated_in_the_core_is_what_the_whole_graph_gives(
    name: str, norm: Norm
) -> None:
    graph = GRAPHS[name](2)
    whole = Adjacency.from_edge_index(graph.edge_index(), graph.num_nodes)
    x = torch.randn(graph.num_nodes, 3, dtype=torch.float64)
    truth = whole.propagate(x, norm)
    for block in partition(whole, num_blocks=4):
        found = block.adj.propagate(x[block.nodes], norm)[: block.core.numel()]
        torch.testing.assert_close(found, truth[block.core], rtol=0, atol=1e-12)
        assert torch.equal(block.adj.degree, whole.degree[block.nodes])


@pytest.mark.parametrize("hops", [0, 1, 2])
@pytest.mark.parametrize("name", GRAPHS)
def test_a_subgraph_has_all_edges_between_its_nodes(name: str, hops: int) -> None:
    graph = GRAPHS[name](3)
    blocks = partition(graph.edge_index(), graph.num_nodes, 5)
    for index, core in enumerate(blocks.cores):
        nodes, adj = blocks.subgraph(index, hops)
        inside = within(graph, set(core.tolist()), hops)
        assert nodes.tolist() == sorted(inside)
        found = {(int(nodes[u]), int(nodes[v])) for u, v in adj.edge_index.T.tolist()}
        both = graph.edges + [(v, u) for u, v in graph.edges]
        assert found == {(u, v) for u, v in both if u in inside and v in inside}
        assert adj.degree.tolist() == [len(graph.neighbours(i)) for i in nodes.tolist()]
