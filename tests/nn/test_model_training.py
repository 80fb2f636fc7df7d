from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from eegnn import EEGNN, SASGNN
from eegnn.nn.model import GraphModel
from tests.nn.model_examples import EDGE_INDEX, KINDS, build, edge_features, features


def ring(n: int) -> Tensor:
    node = torch.arange(n)
    following = (node + 1) % n
    return torch.stack([torch.cat([node, following]), torch.cat([following, node])])


def loss_of(task: str, out: Tensor, y: Tensor) -> Tensor:
    if task == "classification":
        return F.cross_entropy(out, y)
    if task == "multilabel":
        return F.binary_cross_entropy_with_logits(out, y)
    return F.mse_loss(out, y)


@pytest.mark.parametrize("level", ["node", "graph"])
@pytest.mark.parametrize("task", ["classification", "multilabel", "regression"])
@pytest.mark.parametrize("model_class", [SASGNN, EEGNN])
def test_a_plain_training_loop_lowers_the_loss(
    model_class: Callable[..., GraphModel], task: str, level: str
) -> None:
    torch.manual_seed(0)
    model = model_class(4, 16, 3, 4, level=level)
    if level == "node":
        x, edge_index, batch = features(30, 4), ring(30), None
        signal = x[:, :3]
    else:
        x, batch = features(60, 4), torch.arange(20).repeat_interleave(3)
        edge_index = torch.cat([ring(3) + 3 * g for g in range(20)], dim=1)
        signal = x[:, :3].view(20, 3, 3).mean(1)
    y = {
        "classification": signal.argmax(1),
        "multilabel": (signal > 0).float(),
        "regression": signal,
    }[task]
    mask = torch.arange(y.size(0)) % 3 != 0
    optimiser = torch.optim.Adam(model.parameters(), lr=0.02)
    losses = []
    for _ in range(40):
        optimiser.zero_grad()
        loss = loss_of(task, model(x, edge_index, batch=batch)[mask], y[mask])
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < 0.7 * losses[0]
    before, after = (
        losses[0],
        loss_of(task, model.eval()(x, edge_index, batch=batch)[mask], y[mask]),
    )
    assert after.item() < 0.7 * before


@pytest.mark.parametrize("kind", KINDS)
def test_every_parameter_gets_a_gradient(kind: str) -> None:
    model = build(kind, edge_dim=2)
    x, attr = features(), edge_features()
    out, exits = model(x, EDGE_INDEX, attr, return_exits=True)
    (out.pow(2).sum() + exits.cost).backward()
    for name, p in model.named_parameters():
        assert p.grad is not None, name
        assert p.grad.isfinite().all(), name


@pytest.mark.parametrize("kind", [k for k in KINDS if k != "SASGNN"])
def test_the_cost_asks_for_earlier_exits(kind: str) -> None:
    model = build(kind)
    optimiser = torch.optim.SGD(model.parameters(), lr=1.0)
    costs = []
    for _ in range(20):
        optimiser.zero_grad()
        _, exits = model(features(), EDGE_INDEX, return_exits=True)
        exits.cost.backward()
        optimiser.step()
        costs.append(exits.cost.item())
    assert 0 <= costs[-1] < 0.5 * costs[0] <= 0.5
