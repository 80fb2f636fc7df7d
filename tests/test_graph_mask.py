"""Masks of edges: factors on what is propagated, which leave degrees as they are."""

from __future__ import annotations

from typing import get_args

import pytest
import torch
from torch import Tensor

from eegnn import Adjacency
from eegnn.graph import Norm
from eegnn.subgraph import neighborhood, select_graphs, select_nodes

#: 0→1 and 1→0, 1→2 and 2→1, 3→2 and 2→3, in no order; node 4 is isolated.
EDGES = torch.tensor([[1, 0, 3, 2, 1, 2], [0, 1, 2, 1, 2, 3]])
ONE_WAY = EDGES[:, :4]  # 3→2 in one direction only
MASK = torch.tensor([0.5, 0.0, 0.25, 1.0, 3.0, 0.1], dtype=torch.float64)
WEIGHT = torch.tensor([2.0, 0.5, 1.0, 4.0, 0.25, 3.0], dtype=torch.float64)
N = 5


def states(width: int = 3) -> Tensor:
    return torch.randn(N, width, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def matrix(adj: Adjacency, norm: Norm) -> Tensor:
    """What a graph is propagated with: row i, column j for what i receives from j."""
    return adj.propagate(torch.eye(adj.num_nodes, dtype=torch.float64), norm)


def factors(edges: Tensor, mask: Tensor) -> Tensor:
    return mask.new_ones(N, N).index_put((edges[1], edges[0]), mask)


@pytest.mark.parametrize("norm", get_args(Norm))
@pytest.mark.parametrize("weight", [None, WEIGHT])
@pytest.mark.parametrize("directed", [False, True])
def test_each_entry_of_the_normalised_matrix_is_multiplied_by_the_mask_of_its_edge(
    norm: Norm, weight: Tensor | None, directed: bool
) -> None:
    edges = ONE_WAY if directed else EDGES
    mask, count = MASK[: edges.size(1)], edges.size(1)
    weight = None if weight is None else weight[:count]
    adj = Adjacency.from_edge_index(edges, N, edge_weight=weight, directed=directed)
    truth = matrix(adj, norm) * factors(edges, mask)
    torch.testing.assert_close(matrix(adj.masked(mask), norm), truth)
    assert torch.equal(adj.masked(mask).weighted_degree, adj.weighted_degree)


def test_an_edge_in_one_direction_has_its_mask_in_both_and_repeated_columns_are_averaged() -> None:
    edges = torch.tensor([[0, 2, 2, 3], [1, 1, 1, 3]])  # 2→1 twice, and a loop
    adj = Adjacency.from_edge_index(edges, N, directed=False)
    masked = adj.masked(torch.tensor([0.5, 0.2, 0.4, 9.0], dtype=torch.float64))
    one, both = masked.edge_index, masked.edge_mask
    assert both is not None
    found = {(i, j): round(v, 6) for (i, j), v in zip(one.T.tolist(), both.tolist(), strict=True)}
    assert found == {(0, 1): 0.5, (1, 0): 0.5, (2, 1): 0.3, (1, 2): 0.3}


@pytest.mark.parametrize("norm", get_args(Norm))
@pytest.mark.parametrize("directed", [False, True])
def test_gradients_flow_to_mask_and_states(norm: Norm, directed: bool) -> None:
    edges = ONE_WAY if directed else EDGES
    adj = Adjacency.from_edge_index(edges, N, directed=directed)
    inputs = (MASK[: edges.size(1)].clone().requires_grad_(), states().requires_grad_())
    assert torch.autograd.gradcheck(lambda m, x: adj.masked(m).propagate(x, norm), inputs)


def test_a_mask_in_single_precision_serves_states_in_double() -> None:
    adj, x = Adjacency.from_edge_index(EDGES, N), states()
    found = adj.masked(MASK.float()).propagate(x)
    assert found.dtype == torch.float64
    torch.testing.assert_close(found, adj.masked(MASK).propagate(x), rtol=1e-6, atol=1e-7)


def test_features_of_an_edge_are_masked_with_it() -> None:
    adj, features = Adjacency.from_edge_index(EDGES, N), torch.randn(6, 2, dtype=torch.float64)
    found = adj.masked(MASK).incidence_sum(features)
    torch.testing.assert_close(found, adj.incidence_sum(features * MASK[:, None]))


def test_parts_of_a_graph_keep_its_mask() -> None:
    batch = torch.tensor([0, 0, 0, 0, 1])
    adj, x = Adjacency.from_edge_index(EDGES, N, batch).masked(MASK), states()
    whole = adj.propagate(x)
    part, order = neighborhood(adj, torch.tensor([2, 1]))
    torch.testing.assert_close(part.propagate(x[order])[:2], whole[[2, 1]])
    part, order = select_graphs(adj, torch.tensor([True, False]))
    torch.testing.assert_close(part.propagate(x[order]), whole[:4])
    assert adj.edge_mask is not None
    assert part.edge_mask is not None
    assert torch.equal(part.edge_mask, adj.edge_mask)
    part = select_nodes(adj, torch.tensor([True, True, True, False, True]))
    torch.testing.assert_close(part.propagate(x[[0, 1, 2, 4]])[:2], whole[:2])


def test_without_mask_the_structure_is_what_it_was() -> None:
    adj = Adjacency.from_edge_index(EDGES, N)
    masked = adj.masked(MASK)
    assert repr(masked) == "Adjacency(num_nodes=5, num_edges=6, masked)"
    torch.testing.assert_close(masked.unweighted().propagate(states()), adj.propagate(states()))
    assert adj.edge_mask is masked.unweighted().edge_mask is None


def test_a_mask_needs_a_number_for_each_column() -> None:
    adj = Adjacency.from_edge_index(EDGES, N)
    with pytest.raises(ValueError, match=r"edge_mask must have shape \[6\], got \[5\]"):
        adj.masked(MASK[:5])
