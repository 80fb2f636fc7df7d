"""The loss averaged over exits, against sums written out."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn import functional as F

from eegnn import EEGNN, Exits
from eegnn.nn.exit_layer import Objective, Task
from tests.nn.model_examples import EDGE_INDEX, features


def trained_exits(objective: Objective, task: Task, out_channels: int) -> tuple[EEGNN, Exits]:
    torch.manual_seed(0)
    x = features()
    model = EEGNN(
        x.size(1), 8, out_channels, 5, objective=objective, task=task,
        continue_bias=0.0, head_scale=1.0,
    )  # fmt: skip
    _, exits = model(x, EDGE_INDEX, return_exits=True)
    return model, exits


@pytest.mark.parametrize("objective", ["expected", "averaged"])
def test_classification(objective: Objective) -> None:
    _, exits = trained_exits(objective, "classification", 3)
    assert exits.outputs is not None
    assert exits.log_weight is not None
    units = exits.outputs.size(1)
    y = torch.arange(units) % 3
    weight, logits = exits.log_weight.exp().tolist(), exits.outputs.tolist()
    total = 0.0
    for unit in range(units):
        for layer in range(6):
            row = logits[layer][unit]
            log_sum = math.log(sum(math.exp(v) for v in row))
            total += weight[layer][unit] * (log_sum - row[int(y[unit])])
    assert exits.average_loss(F.cross_entropy, y).item() == pytest.approx(total / units, rel=1e-5)


def test_several_labels_and_units_that_count() -> None:
    _, exits = trained_exits("averaged", "multilabel", 2)
    assert exits.outputs is not None
    assert exits.log_weight is not None
    outputs, weights = exits.outputs.tolist(), exits.log_weight.exp().tolist()
    index = torch.tensor([0, 2])
    y = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    total = 0.0
    for place, unit in enumerate(index.tolist()):
        for layer in range(6):
            for label in range(2):
                margin = outputs[layer][unit][label]
                margin = margin if y[place, label] else -margin
                total += weights[layer][unit] * math.log1p(math.exp(-margin)) / 2
    found = exits.average_loss(F.binary_cross_entropy_with_logits, y, index)
    assert found.item() == pytest.approx(total / 2, rel=1e-5)


def test_it_is_the_loss_of_the_mean_plus_the_spread_for_squared_errors() -> None:
    model, exits = trained_exits("averaged", "regression", 1)
    assert exits.outputs is not None
    assert exits.log_weight is not None
    y = torch.linspace(-1, 1, exits.outputs.size(1)).unsqueeze(-1)
    weight = exits.log_weight.exp().unsqueeze(-1)
    mean = (weight * exits.outputs).sum(dim=0)
    spread = (weight * (exits.outputs - mean).square()).sum(dim=0)
    expected = F.mse_loss(mean, y) + spread.mean()
    torch.testing.assert_close(exits.average_loss(F.mse_loss, y), expected)
    torch.testing.assert_close(model(features(), EDGE_INDEX), mean)


def test_it_is_not_below_the_loss_of_the_mixture_and_reaches_every_weight() -> None:
    model, exits = trained_exits("averaged", "classification", 3)
    x = features()
    y = torch.arange(x.size(0)) % 3
    average = exits.average_loss(F.cross_entropy, y)
    assert average > F.cross_entropy(model(x, EDGE_INDEX), y)
    average.backward()
    assert all(p.grad is not None and p.grad.any() for p in model.parameters())


def test_the_two_kinds_of_exits_evaluate_alike() -> None:
    outputs = []
    objectives: list[Objective] = ["expected", "averaged"]
    for objective in objectives:
        model, _ = trained_exits(objective, "classification", 3)
        out, exits = model.predict(features(), EDGE_INDEX)
        outputs.append((out, exits.layer))
    assert torch.equal(outputs[0][0], outputs[1][0])
    assert torch.equal(outputs[0][1], outputs[1][1])


def test_regression_averages_by_default_and_nothing_else_does() -> None:
    assert EEGNN(2, 4, 1, task="regression").averages_loss
    assert not EEGNN(2, 4, 1, task="regression", objective="expected").averages_loss
    assert not EEGNN(2, 4, 2).averages_loss
    assert EEGNN(2, 4, 2, objective="averaged").averages_loss


@pytest.mark.parametrize("objective", ["sampled", "expected"])
def test_without_weights_of_the_exits_it_is_refused(objective: Objective) -> None:
    model, exits = trained_exits(objective, "classification", 3)
    if objective == "expected":
        _, exits = model.predict(features(), EDGE_INDEX)
    with pytest.raises(ValueError, match="average_loss needs the exits of a model in training"):
        exits.average_loss(F.cross_entropy, torch.zeros(exits.layer.numel(), dtype=torch.int64))
