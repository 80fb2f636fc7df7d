from __future__ import annotations

import sys

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from eegnn import Adjacency
from eegnn.engine.blocked import Blocks, partition
from tests.engine.blocked.examples import ring
from tests.graphs import Pairs, both_ways, graphs, quick


@quick
@given(graph=graphs(max_nodes=14), data=st.data())
def test_every_node_is_in_exactly_one_core(graph: tuple[int, Pairs], data: st.DataObject) -> None:
    n, pairs = graph
    count = data.draw(st.integers(1, max(n, 1)))
    blocks = partition(both_ways(pairs), n, count)
    assert len(blocks) <= count
    assert sorted(node for core in blocks.cores for node in core.tolist()) == list(range(n))
    assert all(core.numel() for core in blocks.cores)
    assert [int(blocks.assignment[i]) for i in range(n)] == [
        next(b for b, core in enumerate(blocks.cores) if i in core.tolist()) for i in range(n)
    ]


def test_blocks_of_a_ring_are_arcs_of_about_the_same_length() -> None:
    blocks = partition(ring(n=200).edge_index(), 200, 10)
    assert len(blocks) == 10
    for block in blocks:
        assert 18 <= block.core.numel() <= 22
        assert block.halo.numel() <= 4  # an arc has two neighbours; METIS may give two arcs


def test_the_same_graph_is_cut_alike_each_time_and_from_an_adjacency() -> None:
    edge_index = ring().edge_index()
    first, second = partition(edge_index, 60, 7), partition(edge_index, 60, 7)
    third = partition(Adjacency.from_edge_index(edge_index, 60), num_blocks=7)
    assert torch.equal(first.assignment, second.assignment)
    assert torch.equal(first.assignment, third.assignment)


def test_one_block_is_the_graph() -> None:
    blocks = partition(both_ways([(0, 1)]), 3, 1)
    assert blocks.cores[0].tolist() == [0, 1, 2]
    assert repr(blocks) == "Blocks(1, num_nodes=3, num_edges=2)"
    assert repr(blocks[0]) == "Block(core=3, halo=0)"


def test_a_graph_without_nodes_has_no_blocks() -> None:
    assert len(partition(both_ways([]), 0, 1)) == 0


@pytest.mark.parametrize(("count", "message"), [(4, "at most"), (0, "at least 1")])
def test_a_wrong_number_of_blocks_is_refused(count: int, message: str) -> None:
    with pytest.raises(ValueError, match=f"num_blocks must be {message}"):
        partition(both_ways([(0, 1)]), 3, count)


def test_without_pymetis_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pymetis", None)
    with pytest.raises(ImportError, match=r"pip install 'eegnn\[blocks\]'"):
        partition(both_ways([(0, 1)]), 2, 2)
    assert isinstance(partition(both_ways([(0, 1)]), 2, 1), Blocks)  # needs none
