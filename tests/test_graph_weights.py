"""Weights of edges, directions, and adjacency matrices as input."""

from __future__ import annotations

from typing import get_args

import pytest
import torch
from torch import Tensor
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.typing import WITH_TORCH_SPARSE, SparseTensor
from torch_geometric.utils import to_torch_coo_tensor, to_torch_csr_tensor

from eegnn import Adjacency
from eegnn._graph_cache import adjacency_of
from eegnn.graph import Norm
from eegnn.subgraph import neighborhood, select_graphs, select_nodes

#: 0→1 and 1→0, 1→2 and 2→1, 3→2 and 2→3, in no order; node 4 is isolated.
EDGES = torch.tensor([[1, 0, 3, 2, 1, 2], [0, 1, 2, 1, 2, 3]])
WEIGHT = torch.tensor([0.5, 2.0, 0.25, 1.0, 3.0, 4.0], dtype=torch.float64)
N = 5


def dense(edge_index: Tensor, weight: Tensor) -> Tensor:
    """Row i, column j: the weight of the edge from j to i."""
    matrix = weight.new_zeros(N, N)
    return matrix.index_put((edge_index[1], edge_index[0]), weight)


def normalised(matrix: Tensor, norm: Norm) -> Tensor:
    degree = matrix.sum(dim=1)
    inverse = torch.where(degree > 0, 1 / degree.clamp(min=1e-30), 0)
    if norm == "mean":
        return inverse[:, None] * matrix
    return inverse[:, None].sqrt() * matrix * inverse.sqrt() if norm == "sym" else matrix


def states(width: int = 3) -> Tensor:
    return torch.randn(N, width, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("norm", get_args(Norm))
@pytest.mark.parametrize("directed", [False, True])
def test_propagation_with_weights_is_the_product_with_their_matrix(
    norm: Norm, directed: bool
) -> None:
    edges, weight = (EDGES[:, :4], WEIGHT[:4]) if directed else (EDGES, WEIGHT)
    adj = Adjacency.from_edge_index(edges, N, edge_weight=weight, directed=directed)
    x = states()
    truth = normalised(dense(edges, weight), norm) @ x
    torch.testing.assert_close(adj.propagate(x, norm), truth)


def test_the_symmetric_normalisation_is_that_of_pyg() -> None:
    adj = Adjacency.from_edge_index(EDGES, N, edge_weight=WEIGHT)
    edge_index, weight = gcn_norm(EDGES, WEIGHT, N, add_self_loops=False, dtype=torch.float64)
    x = states()
    torch.testing.assert_close(adj.propagate(x), dense(edge_index, weight) @ x)


@pytest.mark.parametrize("norm", get_args(Norm))
def test_gradients_of_weights_come_in_the_order_of_the_edge_list(norm: Norm) -> None:
    base, x = Adjacency.from_edge_index(EDGES, N), states().requires_grad_()
    weight = WEIGHT.clone().requires_grad_()
    found = torch.autograd.grad(base.weighted(weight).propagate(x, norm).sin().sum(), (weight, x))
    truth = normalised(dense(EDGES, weight), norm) @ x
    for one, other in zip(found, torch.autograd.grad(truth.sin().sum(), (weight, x)), strict=True):
        torch.testing.assert_close(one, other)
    assert torch.autograd.gradgradcheck(
        lambda w, x: base.weighted(w).propagate(x, norm), (weight, x)
    )


def test_weights_of_zero_have_finite_gradients() -> None:
    weight = torch.zeros(EDGES.size(1), requires_grad=True)
    adj = Adjacency.from_edge_index(EDGES, N).weighted(weight)
    (grad,) = torch.autograd.grad(adj.propagate(states().float()).sum(), weight)
    assert grad.isfinite().all()


def test_weights_of_one_are_the_same_as_none() -> None:
    twice = torch.cat([EDGES, EDGES[:, :1]], dim=1)  # repeats an edge
    adj, x = Adjacency.from_edge_index(twice, N), states()
    weighted = adj.weighted(torch.ones(twice.size(1), dtype=torch.float64))
    for norm in get_args(Norm):
        torch.testing.assert_close(weighted.propagate(x, norm), adj.propagate(x, norm))


def test_an_edge_listed_in_one_direction_has_its_weight_in_both() -> None:
    one_way = torch.tensor([[0, 2], [1, 1]])
    weight = torch.tensor([2.0, 3.0], dtype=torch.float64)
    adj = Adjacency.from_edge_index(one_way, N, edge_weight=weight, directed=False)
    both = dense(one_way, weight) + dense(one_way.flip(0), weight)
    torch.testing.assert_close(adj.propagate(states(), "sum"), both @ states())


@pytest.mark.parametrize(
    ("weight", "error", "message"),
    [
        (WEIGHT[:2], ValueError, r"edge_weight must have shape \[6\].*got \[2\]"),
        (WEIGHT[:, None], ValueError, r"edge_weight must have shape \[6\].*got \[6, 1\]"),
        (-WEIGHT, ValueError, r"edge_weight must be finite and non-negative.*-4 to -0.25"),
        (WEIGHT / 0, ValueError, r"edge_weight must be finite"),
        (WEIGHT * torch.nan, ValueError, r"edge_weight must be finite"),
        (WEIGHT.long(), TypeError, r"edge_weight must be floating point, got torch.int64"),
        ([1.0] * 6, TypeError, r"edge_weight must be a torch.Tensor, got list"),
    ],
)
def test_bad_weights_are_refused(weight: Tensor, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        adjacency_of(EDGES, N, edge_weight=weight)


@pytest.mark.parametrize("convert", [to_torch_csr_tensor, to_torch_coo_tensor])
def test_a_sparse_matrix_is_read_as_transposed_with_its_values_as_weights(convert) -> None:  # type: ignore[no-untyped-def]
    x = states()
    matrix = convert(EDGES.flip(0), WEIGHT, size=(N, N))
    torch.testing.assert_close(adjacency_of(matrix, N).propagate(x, "sum"), matrix.to_dense() @ x)
    assert adjacency_of(matrix, N) is adjacency_of(matrix, N)
    plain = adjacency_of(convert(EDGES.flip(0), size=(N, N)), N)
    assert plain.weight is None
    assert plain.edge_index.tolist() == Adjacency.from_edge_index(EDGES, N).edge_index.tolist()


class StandIn(SparseTensor):
    """What PyG reads of torch_sparse's class, which cannot be made where that is not installed."""

    def __init__(self, index: Tensor, weight: Tensor | None) -> None:
        self.entries = (*index, weight)

    def coo(self) -> tuple[Tensor | None, ...]:
        return self.entries

    def size(self, dim: int) -> int:
        return N


@pytest.mark.skipif(WITH_TORCH_SPARSE, reason="the real class is another one")
@pytest.mark.parametrize("weight", [None, WEIGHT])
def test_a_sparse_tensor_of_torch_sparse_is_read_as_the_same_matrix(weight: Tensor | None) -> None:
    found = adjacency_of(StandIn(EDGES.flip(0), weight), N)
    matrix = to_torch_csr_tensor(EDGES.flip(0), weight, size=(N, N))
    expected = adjacency_of(matrix, N).propagate(states(), "sum")
    torch.testing.assert_close(found.propagate(states(), "sum"), expected)


def test_a_matrix_whose_values_changed_is_read_again() -> None:
    matrix = to_torch_csr_tensor(EDGES.flip(0), WEIGHT, size=(N, N))
    before = adjacency_of(matrix, N).propagate(states(), "sum")
    matrix.values().mul_(2)
    torch.testing.assert_close(adjacency_of(matrix, N).propagate(states(), "sum"), 2 * before)


def test_a_directed_graph_keeps_directions_without_a_warning(
    recwarn: pytest.WarningsRecorder,
) -> None:
    one_way = torch.tensor([[0, 1, 3], [1, 2, 2]])
    adj = Adjacency.from_edge_index(one_way, N, directed=True)
    assert adj.is_directed
    assert sorted(adj.edge_index.T.tolist()) == sorted(one_way.T.tolist())
    assert adj.weighted_degree.tolist() == [0, 1, 2, 0, 0]
    truth = normalised(dense(one_way, torch.ones(3, dtype=torch.float64)), "mean")
    torch.testing.assert_close(adj.propagate(states(), "mean"), truth @ states())
    assert not recwarn


def test_a_symmetric_edge_list_is_not_directed() -> None:
    assert not Adjacency.from_edge_index(EDGES, N, directed=True).is_directed
    one_way = Adjacency.from_edge_index(EDGES[:, :1], N, directed=False)
    assert one_way.degree.tolist() == [1, 1, 0, 0, 0]


@pytest.mark.parametrize("norm", get_args(Norm))
def test_parts_of_a_graph_keep_weights_and_directions(norm: Norm) -> None:
    batch, x = torch.tensor([0, 0, 0, 0, 1]), states()
    edges, weight = EDGES[:, :4], WEIGHT[:4]
    adj = Adjacency.from_edge_index(edges, N, batch, 2, edge_weight=weight, directed=True)
    whole = adj.propagate(x, norm)
    part, rows = select_graphs(adj, torch.tensor([True, False]))
    torch.testing.assert_close(part.propagate(x[rows], norm), whole[rows])
    assert part.edge_index.tolist() == adj.edge_index.tolist()
    part, rows = neighborhood(adj, torch.tensor([1, 2]))
    torch.testing.assert_close(part.propagate(x[rows], norm)[:2], whole[[1, 2]])
    part = select_nodes(adj, torch.tensor([True, True, True, True, False]))
    torch.testing.assert_close(part.propagate(x[:4], norm), whole[:4])


def test_a_graph_on_another_device_is_the_same() -> None:
    adj = Adjacency.from_edge_index(EDGES, N, edge_weight=WEIGHT).to("meta")
    values = (*adj._norm_values("sym", torch.float64), adj.weight, adj.weighted_degree, adj.col)
    assert all(value is not None and value.device.type == "meta" for value in values)


def test_graphs_without_a_batch_are_one() -> None:
    with pytest.raises(ValueError, match="3 graphs need batch"):
        adjacency_of(EDGES, N, batch_size=3)
    assert adjacency_of(EDGES, N, torch.zeros(N, dtype=torch.int64), 3).num_graphs == 3
