from __future__ import annotations

from typing import get_args

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import cross_entropy

from eegnn.analysis.layers import LayerOutputs
from eegnn.analysis.oracle import Pick, oracle
from tests.graphs import quick

L, UNITS, CLASSES = 5, 30, 3
PICKS: tuple[Pick, ...] = get_args(Pick)


def random_outputs(seed: int) -> tuple[LayerOutputs, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    out = torch.randn(L, UNITS, CLASSES, generator=generator)
    y = torch.randint(CLASSES, (UNITS,), generator=generator)
    return at_full_depth(out), y


def at_full_depth(out: Tensor) -> LayerOutputs:
    return LayerOutputs(out, None, out[-1], torch.full((out.size(1),), len(out)))


def predicted(outputs: LayerOutputs, layer: int, unit: int) -> int:
    return int(outputs.out[layer - 1, unit].argmax())


@quick
@given(st.integers(0, 10**6), st.sampled_from(PICKS))
def test_the_oracle_is_that_of_the_paper(seed: int, pick: Pick) -> None:
    outputs, y = random_outputs(seed)
    found = oracle(outputs, y, "accuracy", pick)
    correct = 0
    for unit in range(UNITS):
        order = list(range(1, L + 1))
        if pick == "latest":
            order.reverse()
        elif pick == "confident":
            losses = cross_entropy(outputs.out[:, unit], y[unit].expand(L), reduction="none")
            order = (1 + losses.argsort()).tolist()
        right = [layer for layer in order if predicted(outputs, layer, unit) == y[unit]]
        assert found.layer[unit] == (right[0] if right else L)
        correct += bool(right)
    assert found.score == found.right_somewhere == pytest.approx(correct / UNITS)
    assert found.cost == pytest.approx(float(found.layer.double().mean()) / L)


@quick
@given(st.integers(0, 10**6), st.sampled_from(PICKS))
def test_no_exits_are_more_accurate_than_the_oracles(seed: int, pick: Pick) -> None:
    outputs, y = random_outputs(seed)
    index = torch.arange(0, UNITS, 2)
    found = oracle(outputs.select(index), y[index], "accuracy", pick)
    assert found.layer.shape == index.shape
    for layer in range(1, L + 1):
        right = [predicted(outputs, layer, unit) == y[unit] for unit in index.tolist()]
        assert found.score >= sum(right) / len(index)
        if layer == L:
            assert found.full_score == found.right_at_end == pytest.approx(sum(right) / len(index))


def two_logits(margins: list[list[float]]) -> Tensor:
    """Outputs whose second logit is ahead by these margins ``[L, U]``."""
    margin = torch.tensor(margins)
    return torch.stack([-margin / 2, margin / 2], dim=-1)


def test_the_earliest_right_layer_may_rank_worse_than_full_depth() -> None:
    # Everyone but unit 3 is right at both layers; unit 3 is wrong at both. The margins of the
    # second class stand above that of unit 3 at the end, and below it at the start.
    y = torch.tensor([0, 1, 1, 0])
    out = two_logits([[-0.1, 0.1, 0.1, 0.6], [-0.1, 1.0, 2.0, 0.5]])
    outputs = at_full_depth(out)
    earliest = oracle(outputs, y, "roc_auc", "earliest")
    latest = oracle(outputs, y, "roc_auc", "latest")
    assert earliest.layer.tolist() == [1, 1, 1, 2]
    assert latest.layer.tolist() == [2, 2, 2, 2]
    assert earliest.full_score == latest.full_score == latest.score == 1.0
    assert earliest.score == pytest.approx(2 / 4)
    assert earliest.right_somewhere == earliest.right_at_end == 0.75


@pytest.mark.parametrize("y", [torch.zeros(UNITS, 1), torch.zeros(3, dtype=torch.int64)])
def test_labels_must_be_classes(y: Tensor) -> None:
    outputs, _ = random_outputs(0)
    with pytest.raises(ValueError, match="the class of each unit"):
        oracle(outputs, y, "accuracy")


def test_there_are_two_picks() -> None:
    with pytest.raises(ValueError, match="pick must be one of"):
        oracle(*random_outputs(0), "accuracy", "median")  # type: ignore[arg-type]
