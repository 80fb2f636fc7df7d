"""`adjacency_of` remembers the edge lists it has seen."""

from __future__ import annotations

import gc
import weakref

import pytest
import torch

from eegnn._graph_cache import adjacency_of
from tests.graphs import both_ways


def test_the_same_tensor_gives_the_same_adjacency() -> None:
    edge_index = both_ways([(0, 1)])
    assert adjacency_of(edge_index, 3, None) is adjacency_of(edge_index, 3, None)


def test_a_change_in_place_gives_a_new_adjacency() -> None:
    edge_index = both_ways([(0, 1)])
    first = adjacency_of(edge_index, 3, None)
    edge_index[edge_index == 1] = 2
    second = adjacency_of(edge_index, 3, None)
    assert second is not first
    assert second.degree.tolist() == [1, 0, 1]


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_another_batch_gives_a_new_adjacency(dtype: torch.dtype) -> None:
    edge_index, batch = both_ways([(0, 1)]), torch.tensor([0, 0, 0], dtype=dtype)
    plain = adjacency_of(edge_index, 3, None)
    single = adjacency_of(edge_index, 3, batch)
    assert plain.batch is None
    assert single.batch is not None
    assert adjacency_of(edge_index, 3, batch) is single
    assert adjacency_of(edge_index, 3, batch.clone()) is single
    batch[2] = 1
    assert adjacency_of(edge_index, 3, batch).num_graphs == 2
    assert adjacency_of(edge_index, 3, None).batch is None


def test_another_number_of_nodes_gives_a_new_adjacency() -> None:
    edge_index = both_ways([(0, 1)])
    assert adjacency_of(edge_index, 3, None).num_nodes == 3
    assert adjacency_of(edge_index, 4, None).num_nodes == 4
    assert adjacency_of(edge_index, None, None).num_nodes == 2


def test_remembering_does_not_keep_the_tensor_alive() -> None:
    edge_index = both_ways([(0, 1)])
    adjacency = weakref.ref(adjacency_of(edge_index, 2, None))
    tensor = weakref.ref(edge_index)
    del edge_index
    gc.collect()
    assert tensor() is None
    assert adjacency() is None


def test_inference_tensors_are_accepted_though_they_have_no_version() -> None:
    with torch.inference_mode():
        edge_index = both_ways([(0, 1)])
        assert adjacency_of(edge_index, 2, None).num_edges == 2
        edge_index.fill_(0)
        assert adjacency_of(edge_index, 2, None).num_edges == 0
