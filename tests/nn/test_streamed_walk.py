"""Steps of one size that keep their moves alone, against autograd over all steps."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from eegnn import SASGNN, Adjacency
from eegnn.nn import sas_gnn
from eegnn.nn.streamed_walk import same_steps
from tests.nn.exit_examples import batch_of_graphs, features


def test_plain_steps_alone_keep_their_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[int] = []

    def noted(*given: Any) -> Tensor:
        called.append(1)
        return same_steps(*given)

    monkeypatch.setattr(sas_gnn, "same_steps", noted)
    x, edges = torch.rand(4, 3), torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]])
    for options in ({"conv_dropout": 0.2}, {"activation": "tanh"}, {"conv_norm": "batch"}):
        SASGNN(3, 8, 2, 4, recompute=True, **options)(x, edges)
    with torch.no_grad():
        SASGNN(3, 8, 2, 4, recompute=True)(x, edges)
    assert not called
    SASGNN(3, 8, 2, 4, recompute=True)(x, edges)
    assert called == [1]


@pytest.mark.parametrize("options", [{}, {"shared": False}, {"edge_dim": 2}], ids=str)
def test_gradients_are_those_of_autograd(options: dict[str, Any]) -> None:
    graph = batch_of_graphs(4)
    adj = Adjacency.from_edge_index(graph.edge_index(), graph.num_nodes)
    attr = features(2, 2 * len(graph.edges), 2) if "edge_dim" in options else None
    torch.manual_seed(0)
    model = SASGNN(3, 8, 2, 5, **options).double()
    steps = [conv.bind(adj, attr) for conv in model.convs]  # type: ignore[operator]
    h = features(4, graph.num_nodes, 8).requires_grad_()
    by_hand = h
    for layer in range(5):
        step = steps[layer if len(steps) > 1 else 0]
        by_hand = by_hand + 0.7 * step(by_hand, adj)
    found = same_steps(steps, h, adj, 0.7, 5)
    torch.testing.assert_close(found, by_hand, rtol=0, atol=1e-12)
    wanted = [h, *model.convs.parameters()]
    gradients = (
        torch.autograd.grad(out.square().sum(), wanted, retain_graph=True)  # Ω and W are shared
        for out in (found, by_hand)
    )
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-10)


def test_a_hundred_moves_lead_back_in_single_precision() -> None:
    """By the kernels, where they are: rounding errors of all moves add up in the states."""
    ring = torch.arange(300)
    edges = torch.stack([torch.cat([ring, ring.roll(-1)]), torch.cat([ring.roll(-1), ring])])
    adj, x = Adjacency.from_edge_index(edges, 300), features(1, 300)
    found = []
    for recompute in (False, True):
        torch.manual_seed(0)
        net = SASGNN(3, 32, 2, 100, weight_scale=0.1, recompute=recompute)
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
