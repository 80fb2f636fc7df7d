"""Sparse features against the same features as a dense matrix."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from torch import Tensor

from eegnn import EEGNN, SASGNN, _sparse_linear
from eegnn._sparse_linear import sparse_if_faster, sparse_linear
from eegnn.nn.model import GraphModel
from eegnn.train.batches import Batches
from tests.train.problems import node_problem

ROWS, COLUMNS, WIDTH = 40, 30, 20


def features(dtype: torch.dtype = torch.float32) -> Tensor:
    """One entry in twenty is not zero; some rows and columns are empty."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(ROWS, COLUMNS, dtype=dtype, generator=generator)
    return x * (torch.rand(ROWS, COLUMNS, generator=generator) < 0.05)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("out", [1, WIDTH])
def test_outputs_and_gradients_are_those_of_the_dense_product(out: int, dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(1)
    x = features(dtype)
    weight = torch.randn(out, COLUMNS, dtype=dtype, generator=generator, requires_grad=True)
    bias = torch.randn(out, dtype=dtype, generator=generator, requires_grad=True)
    grad = torch.randn(ROWS, out, dtype=dtype, generator=generator)
    dense = x @ weight.T + bias
    expected = torch.autograd.grad(dense, (weight, bias), grad)
    sparse_x = x.to_sparse_csr()
    for _ in range(2):  # the second time the transposed matrix is there
        found = sparse_linear(sparse_x, weight, bias)
        torch.testing.assert_close(found, dense)
        torch.testing.assert_close(torch.autograd.grad(found, (weight, bias), grad), expected)


def test_only_large_features_that_are_nearly_all_zero_become_sparse(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x = features()
    assert sparse_if_faster(x) is x
    monkeypatch.setattr(_sparse_linear, "MANY_ENTRIES", x.numel())
    assert sparse_if_faster(None) is None
    assert sparse_if_faster(x + 1).layout == torch.strided  # type: ignore[union-attr]
    found = sparse_if_faster(x)
    assert found is not None
    assert found.layout == torch.sparse_csr
    assert torch.equal(found.to_dense(), x)


@pytest.mark.parametrize("kind", [EEGNN, SASGNN])
def test_models_learn_the_same_from_sparse_features(kind: type[GraphModel]) -> None:
    edge_index = torch.tensor(list(pairwise(range(ROWS)))).T
    edge_index = torch.cat([edge_index, edge_index.flip(0)], dim=1)
    gradients = []
    for x in (features(), features().to_sparse_csr()):
        torch.manual_seed(0)
        model = kind(COLUMNS, WIDTH, 3, num_layers=4)
        model(x, edge_index).square().sum().backward()
        gradients.append([p.grad for p in model.parameters()])
        model.predict(x, edge_index)
    torch.testing.assert_close(*gradients)


def test_sparse_features_that_are_not_finite_are_refused() -> None:
    x = features()
    x[7, 3] = torch.nan
    edge_index = torch.tensor([[0, 1], [1, 0]])
    with pytest.raises(ValueError, match="x holds NaN or infinite values, first in row 7"):
        SASGNN(COLUMNS, 4, 2)(x.to_sparse_csr(), edge_index)


@pytest.mark.parametrize(("blocks", "layout"), [(0, torch.sparse_csr), (2, torch.strided)])
def test_training_takes_one_graph_with_sparse_features_unless_it_is_cut(
    blocks: int, layout: torch.layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_sparse_linear, "MANY_ENTRIES", 1)
    problem = node_problem()
    graph = problem.graphs[0].clone()
    graph.x = torch.eye(graph.num_nodes)
    batches = Batches(replace(problem, graphs=[graph]), 1, blocks=blocks)
    whole = batches.whole()
    assert whole is not None
    assert whole.x is not None
    assert whole.x.layout == layout
    assert torch.equal(whole.x.to_dense(), graph.x)
