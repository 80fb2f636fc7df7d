from __future__ import annotations

import pytest
import torch

from eegnn.graph import Adjacency
from eegnn.subgraph import select_nodes
from eegnn.zoo.edges import edge_features


def by_edge(columns: list[tuple[int, int]], values: list[float]) -> dict[str, float]:
    """Features of each directed edge, as ``"source>target"``."""
    adj = adjacency(columns)
    found = edge_features(adj, torch.tensor(values, dtype=torch.float64).view(-1, 1))
    assert found.shape == (adj.num_edges, 1)
    return {
        f"{u}>{v}": float(value)
        for (u, v), value in zip(adj.edge_index.T.tolist(), found, strict=True)
    }


def adjacency(columns: list[tuple[int, int]], n: int = 4) -> Adjacency:
    edges = torch.tensor(columns, dtype=torch.int64).view(-1, 2).T
    return Adjacency.from_edge_index(edges, n)


def test_each_direction_keeps_its_own_features() -> None:
    columns = [(2, 1), (0, 1), (1, 2), (1, 0)]
    found = by_edge(columns, [1, 2, 3, 4])
    assert found == {"2>1": 1, "0>1": 2, "1>2": 3, "1>0": 4}


@pytest.mark.filterwarnings("ignore:edge_index is directed")
def test_an_edge_listed_once_has_the_same_features_in_both_directions() -> None:
    columns = [(2, 1), (0, 1), (1, 0)]
    found = by_edge(columns, [1, 2, 3])
    assert found == {"2>1": 1, "1>2": 1, "0>1": 2, "1>0": 3}


@pytest.mark.filterwarnings("ignore:edge_index is directed")
def test_repeated_edges_are_averaged_and_self_loops_ignored() -> None:
    columns = [(0, 1), (1, 0), (0, 1), (2, 2), (3, 2), (3, 2)]
    found = by_edge(columns, [1, 2, 5, 100, 6, 8])
    assert found == {"0>1": 3, "1>0": 2, "3>2": 7, "2>3": 7}


def test_a_graph_without_edges_has_no_edge_features() -> None:
    assert by_edge([], []) == {}


def test_the_gradient_goes_back_to_the_columns() -> None:
    adj = adjacency([(0, 1), (1, 0), (1, 2), (2, 1), (0, 1)])
    e = torch.randn(5, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda e: edge_features(adj, e), e)


def test_a_selection_has_no_edge_features() -> None:
    adj = select_nodes(adjacency([(0, 1), (1, 0)]), torch.tensor([True, True, False, False]))
    with pytest.raises(ValueError, match="not to a selection"):
        edge_features(adj, torch.ones(2, 1))
