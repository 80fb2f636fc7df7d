from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.func import functional_call, grad, jacfwd, jacrev, stack_module_state, vmap

from eegnn import EEGNN, SASGNN, Adjacency, SASConv
from eegnn.nn.model import GraphModel
from tests.nn.model_examples import lively
from tests.train.problems import ring

N = 20
EDGES = ring(N, 10)
CASES = [(kind, level) for kind in ("sasgnn", "eegnn") for level in ("node", "graph")]
cases = pytest.mark.parametrize(("kind", "level"), CASES)


def model(kind: str, level: str = "node", seed: int = 0) -> GraphModel:
    torch.manual_seed(seed)
    if kind == "sasgnn":
        return SASGNN(4, 8, 3, 3, level=level)  # type: ignore[arg-type]
    return lively(EEGNN(4, 8, 3, 3, level=level), 20.0, 0.0)  # type: ignore[arg-type]


def features(*shape: int) -> Tensor:
    return torch.randn(*shape, N, 4, generator=torch.Generator().manual_seed(1))


def loss(ours: GraphModel, weights: Any, x: Tensor) -> Tensor:
    return functional_call(ours, weights, (x, EDGES)).square().mean()


@cases
def test_grad_is_that_of_autograd(kind: str, level: str) -> None:
    ours, x = model(kind, level).train(), features()
    weights = dict(ours.named_parameters())
    torch.manual_seed(2)
    found = grad(lambda weights: loss(ours, weights, x))(weights)
    torch.manual_seed(2)
    loss(ours, weights, x).backward()
    for name, weight in weights.items():
        expected = torch.zeros_like(weight) if weight.grad is None else weight.grad
        torch.testing.assert_close(found[name], expected, rtol=1e-5, atol=1e-6)


@cases
def test_vmap_over_features_is_one_call_each(kind: str, level: str) -> None:
    ours, several = model(kind, level).eval(), features(3)
    expected = torch.stack([ours(x, EDGES) for x in several])
    torch.testing.assert_close(vmap(lambda x: ours(x, EDGES))(several), expected)


@cases
def test_vmap_over_an_ensemble_is_one_call_each(kind: str, level: str) -> None:
    ensemble, x = [model(kind, level, seed).eval() for seed in range(3)], features()
    weights, buffers = stack_module_state(ensemble)

    def call(weights: Any, buffers: Any) -> Tensor:
        return functional_call(ensemble[0], (weights, buffers), (x, EDGES))

    expected = torch.stack([one(x, EDGES) for one in ensemble])
    torch.testing.assert_close(vmap(call)(weights, buffers), expected)


@cases
def test_jacobians_are_those_of_autograd(kind: str, level: str) -> None:
    ours, x = model(kind, level).eval(), features()
    expected = torch.autograd.functional.jacobian(lambda x: ours(x, EDGES), x)
    for jacobian in (jacrev, jacfwd):
        found = jacobian(lambda x: ours(x, EDGES))(x)
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)


def test_gradients_of_each_graph_are_those_of_one_after_the_other() -> None:
    ours, several = model("eegnn").eval(), features(2)
    weights = dict(ours.named_parameters())
    one = grad(lambda weights, x: loss(ours, weights, x))
    found = vmap(one, in_dims=(None, 0))(weights, several)
    for number, x in enumerate(several):
        for name, expected in one(weights, x).items():
            torch.testing.assert_close(found[name][number], expected, rtol=1e-5, atol=1e-6)


def test_a_layer_and_weights_of_edges_work_too() -> None:
    conv, h = SASConv(4), features()
    expected = torch.autograd.functional.jacobian(lambda h: conv(h, EDGES), h)
    torch.testing.assert_close(jacrev(lambda h: conv(h, EDGES))(h), expected)
    weights = torch.rand(2, EDGES.size(1))
    expected = torch.stack([conv(h, EDGES, edge_weight=weight) for weight in weights])
    found = vmap(lambda weight: conv(h, EDGES, edge_weight=weight))(weights)
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("cold", ["adj", "edge_index"])
def test_a_graph_first_seen_within_a_transform_is_as_any_other(cold: str) -> None:
    ours, x, edge_index = model("eegnn").eval(), features(), EDGES.clone()
    expected, _ = ours.predict(x, EDGES)
    graph = Adjacency.from_edge_index(edge_index, N) if cold == "adj" else edge_index
    grad(lambda x: ours(x, graph).sum())(x)
    assert torch.equal(ours.predict(x, graph)[0], expected)
    pickle.loads(pickle.dumps(copy.deepcopy(graph)))
