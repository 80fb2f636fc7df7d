from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from eegnn import EEGNN, SASGNN
from eegnn.train.gradients import GradientNorms
from eegnn.zoo.gcn import GCN


def norm(parameters: list[nn.Parameter]) -> float:
    """Literally: the root of the sum of all squares."""
    squares = [g**2 for p in parameters if p.grad is not None for g in p.grad.view(-1).tolist()]
    return math.sqrt(sum(squares))


def with_random_gradients(model: nn.Module, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        parameter.grad = torch.randn(parameter.shape, generator=generator)


def test_norms_are_means_over_the_steps_for_each_part() -> None:
    model = EEGNN(3, 8, 2, num_layers=4, head_layers=2)
    confidence = list(model.get_submodule("loop.confidence").parameters())
    temperature = list(model.get_submodule("loop.temperature").parameters())
    heads = {id(p) for p in confidence + temperature}
    parts = {
        "confidence": confidence,
        "temperature": temperature,
        "backbone": [p for p in model.parameters() if id(p) not in heads],
    }
    norms, expected = GradientNorms(model), dict.fromkeys(parts, 0.0)
    for seed in range(3):
        with_random_gradients(model, seed)
        norms.add()
        expected = {part: expected[part] + norm(parts[part]) / 3 for part in parts}
    assert norms.mean() == pytest.approx(expected, rel=1e-5)


def test_parts_make_up_the_whole_model() -> None:
    model = EEGNN(3, 8, 2, num_layers=4)
    norms = GradientNorms(model)
    with_random_gradients(model, 0)
    norms.add()
    squares = sum(value**2 for value in norms.mean().values())
    assert math.sqrt(squares) == pytest.approx(norm(list(model.parameters())), rel=1e-5)


@pytest.mark.parametrize("kind", [SASGNN, GCN])
def test_a_model_without_exits_has_a_backbone_only(kind: type[nn.Module]) -> None:
    model = kind(3, 8, 2, num_layers=4)
    norms = GradientNorms(model)
    with_random_gradients(model, 0)
    norms.add()
    expected = {"backbone": norm(list(model.parameters()))}
    assert norms.mean() == pytest.approx(expected, rel=1e-5)


def test_each_epoch_begins_anew() -> None:
    model = SASGNN(3, 8, 2, num_layers=4)
    norms = GradientNorms(model)
    for seed in range(2):
        with_random_gradients(model, seed)
        norms.add()
        assert norms.mean() == pytest.approx({"backbone": norm(list(model.parameters()))}, rel=1e-5)


def test_what_has_no_gradient_counts_as_0() -> None:
    model = EEGNN(3, 8, 2, num_layers=4)
    with_random_gradients(model, 0)
    for parameter in model.get_submodule("loop.temperature").parameters():
        parameter.grad = None
    norms = GradientNorms(model)
    norms.add()
    found = norms.mean()
    assert found["temperature"] == 0.0
    assert found["confidence"] > 0.0
