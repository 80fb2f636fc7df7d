"""Training in single precision by the compiled kernels, against autograd in double precision."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any
from unittest import mock

import pytest
import torch
from torch import Tensor

from eegnn import EEGNN, SASGNN
from eegnn.nn import advance
from eegnn.nn.compiled import pytorch_alone
from eegnn.nn.gumbel import logistic_noise
from tests.nn.exit_examples import batch_of_graphs, features
from tests.nn.model_examples import lively

pytest.importorskip("numba", reason="needs eegnn[fast]")

KINDS: dict[str, tuple[Any, dict[str, Any]]] = {
    "SASGNN": (SASGNN, {}),
    "SASGNN, a weight for each layer": (SASGNN, {"shared": False, "step_size": 1.0}),
    "EEGNN": (EEGNN, {}),
    "EEGNN, frozen": (EEGNN, {"after_exit": "freeze"}),
    "EEGNN, mean steps": (EEGNN, {"step_size": "mean"}),
}


@pytest.fixture(autouse=True)
def same_noise() -> Iterator[None]:
    """Draw the same noise in single and in double precision."""
    with mock.patch("eegnn.nn.exit_loop.logistic_noise", lambda t: logistic_noise(t.float())):
        yield


def learned(model: Any, dtype: torch.dtype) -> list[Tensor]:
    """The output, and the gradients of all that learns, features included."""
    graph = batch_of_graphs(4)
    x = features(4, graph.num_nodes).to(dtype).requires_grad_()
    torch.manual_seed(1)
    out, exits = model(x, graph.edge_index(), batch=graph.batch(), return_exits=True)
    found = torch.autograd.grad(
        out.square().sum() + 3 * exits.cost, [x, *model.parameters()], allow_unused=True
    )
    return [out.detach(), *(torch.zeros(()) if g is None else g for g in found)]


def built(kind: str, level: str = "node", **more: Any) -> Any:
    build, options = KINDS[kind]
    torch.manual_seed(4)
    model = build(3, 18, 3, num_layers=5, level=level, **options, **more)
    return lively(model, scale=2.0) if build is EEGNN else model


def assert_alike(found: list[Tensor], truth: list[Tensor]) -> None:
    for one, other in zip(found, truth, strict=True):
        size = float(other.abs().max().clamp(min=1e-3))
        torch.testing.assert_close(one.double(), other.double(), rtol=0, atol=2e-4 * size)


@pytest.mark.parametrize("recompute", [False, True])
@pytest.mark.parametrize("level", ["node", "graph"])
@pytest.mark.parametrize("kind", KINDS)
def test_gradients_are_those_of_autograd(kind: str, level: str, recompute: bool) -> None:
    level = "node" if "mean steps" in kind else level  # a graph has one step size
    model = built(kind, level, recompute=recompute)
    double = copy.deepcopy(model).double()
    with mock.patch.object(advance, "step_gradients", wraps=advance.step_gradients) as back:
        found = learned(model, torch.float32)
    if not recompute:
        assert back.call_count == 5
    assert_alike(found, learned(double, torch.float64))


@pytest.mark.parametrize("recompute", [False, True])
@pytest.mark.parametrize("build", [SASGNN, EEGNN])
def test_edge_features_learn(build: Any, recompute: bool) -> None:
    graph = batch_of_graphs(1)
    attr = features(2, 2 * len(graph.edges), 2)
    torch.manual_seed(0)
    model = build(3, 8, 2, num_layers=4, edge_dim=2, recompute=recompute)
    double = copy.deepcopy(model).double()
    found = []
    for one, dtype in ((model, torch.float32), (double, torch.float64)):
        edges = attr.to(dtype).requires_grad_()
        torch.manual_seed(1)
        out = one(features(1, graph.num_nodes).to(dtype), graph.edge_index(), edges)
        wanted = [edges, *one.parameters()]
        found.append([out.detach(), *torch.autograd.grad(out.square().sum(), wanted)])
    assert_alike(*found)


@pytest.mark.parametrize("kind", ["SASGNN", "EEGNN"])
def test_gradients_have_gradients(kind: str) -> None:
    graph, model = batch_of_graphs(4), built(kind, dropout=0.4)
    found = []
    for alone in (False, True):
        torch.manual_seed(1)
        x = features(4, graph.num_nodes).float().requires_grad_()
        with pytorch_alone() if alone else nullcontext():
            out = model(x, graph.edge_index())
            (by_x,) = torch.autograd.grad(out.square().sum(), x, create_graph=True)
            weights = list(model.parameters())
            more = torch.autograd.grad(by_x.square().sum(), weights, allow_unused=True)
        found.append([torch.zeros(()) if g is None else g for g in more])
    assert any(bool(g.any()) for g in found[0])
    assert_alike(*found)


@pytest.mark.parametrize("kind", ["SASGNN", "EEGNN"])
def test_gradients_in_evaluation_are_autograds_own(kind: str) -> None:
    """They may be taken of many outputs at once, which kernels know nothing of."""
    graph, model = batch_of_graphs(4), built(kind).eval()
    x = features(4, graph.num_nodes).float().requires_grad_()
    out = model(x, graph.edge_index())
    rows = torch.eye(out.numel()).view(-1, *out.shape)
    (at_once,) = torch.autograd.grad(out, x, rows, retain_graph=True, is_grads_batched=True)
    (first,) = torch.autograd.grad(out, x, rows[0])
    torch.testing.assert_close(at_once[0], first)
