from __future__ import annotations

import shutil
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from eegnn import EEGNN, SASGNN, Adjacency
from eegnn.nn import exit_loop
from eegnn.nn.model import GraphModel
from tests.nn.model_examples import lively
from tests.train.problems import ring

N = 40
KINDS = ["sasgnn", "eegnn"]


def model(kind: str, num_layers: int = 3, **options: Any) -> GraphModel:
    torch.manual_seed(0)
    if kind == "sasgnn":
        return SASGNN(4, 8, 3, num_layers, **options)
    return lively(EEGNN(4, 8, 3, num_layers, **options), 20.0, 0.0)


def data(level: str) -> tuple[Tensor, Adjacency]:
    x = torch.randn(N, 4, generator=torch.Generator().manual_seed(1))
    batch = None if level == "node" else torch.zeros(N, dtype=torch.int64)
    return x, Adjacency.from_edge_index(ring(N, 30), N, batch)


def step(call: Callable[..., Any], ours: GraphModel, x: Tensor, adj: Adjacency) -> list[Tensor]:
    """Output, exits and gradients of a training step."""
    out, exits = call(x, adj, return_exits=True)
    loss = out.square().mean() + 0.1 * exits.cost
    grads = torch.autograd.grad(loss, list(ours.parameters()), allow_unused=True)
    kept = [grad for grad in grads if grad is not None]
    return [out, exits.layer, exits.time, *kept]


@pytest.fixture(autouse=True)
def no_compiled_code_of_before() -> None:
    torch.compiler.reset()


@pytest.fixture
def fixed_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    def noise(like: Tensor) -> Tensor:
        return torch.linspace(-3, 3, like.numel(), dtype=like.dtype)

    monkeypatch.setattr(exit_loop, "logistic_noise", noise)


@pytest.mark.parametrize("level", ["node", "graph"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mode", ["train", "eval"])
def test_a_forward_pass_is_one_graph(kind: str, level: str, mode: str) -> None:
    ours = model(kind, level=level, dropout=0.3).train(mode == "train")
    found = torch._dynamo.explain(ours)(*data(level))
    assert found.graph_break_count == 0, found.break_reasons
    assert found.graph_count == 1


@pytest.mark.slow
@pytest.mark.parametrize("level", ["node", "graph"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_compiled_training_step_has_the_same_gradients(kind: str, level: str) -> None:
    ours, (x, adj) = model(kind, level=level).train(), data(level)
    compiled = torch.compile(ours, fullgraph=True, backend="aot_eager")
    found = []
    for call in (ours, compiled):
        torch.manual_seed(2)  # this backend draws as eager PyTorch does
        found.append(step(call, ours, x, adj))
    for plain, fast in zip(*found, strict=True):
        torch.testing.assert_close(fast, plain, rtol=1e-5, atol=1e-5)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler")
@pytest.mark.usefixtures("fixed_noise")
def test_inductor_has_the_same_gradients() -> None:
    ours, (x, adj) = model("eegnn", num_layers=2).train(), data("node")
    plain = step(ours, ours, x, adj)
    fast = step(torch.compile(ours, fullgraph=True), ours, x, adj)
    for one, other in zip(fast, plain, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_known_graph_is_compiled_for_once(kind: str) -> None:
    ours, (x, adj) = model(kind).train(), data("node")
    ours(x, adj)  # from here on the graph has its normalised values
    compiled = torch.compile(ours, fullgraph=True, backend="eager")
    compiled(x, adj)
    with torch._dynamo.config.patch(error_on_recompile=True):
        compiled(x, adj)


@pytest.mark.slow
@pytest.mark.parametrize("level", ["node", "graph"])
def test_compiled_evaluation_is_predict(level: str) -> None:
    ours, (x, adj) = model("eegnn", level=level).eval(), data(level)
    expected, left = ours.predict(x, adj)
    compiled = torch.compile(ours, fullgraph=True, backend="aot_eager")
    with torch.no_grad():
        out, exits = compiled(x, adj, return_exits=True)
    torch.testing.assert_close(out, expected, rtol=1e-5, atol=1e-5)
    assert torch.equal(exits.layer, left.layer)
    torch.testing.assert_close(exits.time, left.time, rtol=1e-5, atol=1e-5)
