"""Walks that keep moves alone, against autograd over all steps."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from eegnn import EEGNN, SASGNN, Adjacency, Exits
from eegnn.nn import early_exit, sasgnn
from tests.nn.exit_examples import SAMPLED, Config, batch_of_graphs, features, make

CONFIGS: dict[str, Config] = {
    "default": {},
    "frozen": {"after_exit": "freeze"},
    "mean steps": {"step_size": "mean"},
    "larger heads": {"head_layers": 2, "head_norm": True},
    "tanh": {"activation": "tanh"},
    "bias of exits": {"exit_bias": True},
    "hard": {"hard": True},
}


def sampled(seed: int, recompute: bool, **config: Any) -> tuple[Tensor, Exits, list[Tensor | None]]:
    """Outputs, exits, and the gradients of a loss of both."""
    graph = batch_of_graphs(seed)
    model = make(seed, **{**SAMPLED, **config}, recompute=recompute)
    torch.manual_seed(1)
    x = features(seed, graph.num_nodes)
    out, exits = model(x, graph.edge_index(), batch=graph.batch(), return_exits=True)
    loss = out.square().sum() + 3 * exits.cost
    found = torch.autograd.grad(loss, list(model.parameters()), allow_unused=True)
    return out.detach(), exits, list(found)


@pytest.mark.parametrize("level", ["node", "graph"])
@pytest.mark.parametrize("name", CONFIGS)
def test_what_is_sampled_is_the_same(name: str, level: str) -> None:
    if level == "graph" and name == "mean steps":
        pytest.skip("a graph has a single τ")
    left: set[int] = set()
    for seed in (1, 4, 77):
        plain, again = (
            sampled(seed, recompute, level=level, **CONFIGS[name]) for recompute in (False, True)
        )
        left |= set(plain[1].layer.tolist())
        torch.testing.assert_close(again[0], plain[0], rtol=0, atol=1e-10)
        assert torch.equal(again[1].layer, plain[1].layer)
        for field in ("time", "tau", "cost"):
            one, other = (getattr(found[1], field).detach() for found in (again, plain))
            torch.testing.assert_close(one, other, rtol=0, atol=1e-10)
        for a, b in zip(again[2], plain[2], strict=True):
            if b is not None and bool(b.any()):
                torch.testing.assert_close(a, b, rtol=1e-8, atol=1e-10)
            else:
                assert a is None or not a.any()
    assert len(left) > 2, "units leave at several layers"


def test_who_is_streamed(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[str] = []

    def note(module: Any, name: str) -> None:
        real = getattr(module, name)

        def noted(*given: Any) -> Any:
            called.append(name)
            return real(*given)

        monkeypatch.setattr(module, name, noted)

    note(early_exit, "sampled_walk")
    note(sasgnn, "same_steps")
    x, edges = torch.rand(4, 3), torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]])
    for hard in (False, True):
        EEGNN(3, 8, 2, 4, objective="sampled", hard=hard, recompute=True)(x, edges)
    assert called == ["sampled_walk"], "a hard τ of 0 keeps nothing of the step"
    for options in ({}, {"conv_dropout": 0.2}, {"activation": "tanh"}, {"conv_norm": "batch"}):
        SASGNN(3, 8, 2, 4, recompute=True, **options)(x, edges)
    assert called == ["sampled_walk", "same_steps"], "plain steps alone"
    with torch.no_grad():
        SASGNN(3, 8, 2, 4, recompute=True)(x, edges)
    assert len(called) == 2, "nothing is kept where there are no gradients"


@pytest.mark.parametrize(
    "model", [(SASGNN, {}), (EEGNN, {}), (EEGNN, {"objective": "sampled"})], ids=str
)
def test_a_hundred_moves_lead_back_in_single_precision(model: Any) -> None:
    """By the kernels, where they are: rounding errors of all moves add up in the states."""
    build, options = model
    ring = torch.arange(300)
    edges = torch.stack([torch.cat([ring, ring.roll(-1)]), torch.cat([ring.roll(-1), ring])])
    adj, x = Adjacency.from_edge_index(edges, 300), features(1, 300)
    found = []
    for recompute in (False, True):
        torch.manual_seed(0)
        net = build(3, 32, 2, 100, weight_scale=0.1, recompute=recompute, **options)
        net(x.float(), adj).square().mean().backward()
        grads = [p.grad for p in net.parameters() if p.grad is not None]
        found.append(torch.cat([g.flatten() for g in grads]))
    plain, again = found
    assert 0 < (again - plain).norm() <= 1e-5 * plain.norm()


def test_gradients_are_there_a_second_time() -> None:
    model = SASGNN(3, 8, 2, 6, recompute=True)
    out = model(torch.rand(4, 3), torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]])).square().sum()
    wanted = list(model.parameters())
    first = torch.autograd.grad(out, wanted, retain_graph=True)
    for one, other in zip(first, torch.autograd.grad(out, wanted), strict=True):
        assert torch.equal(one, other)
