from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from eegnn.analysis.layers import LayerOutputs, outputs_by_layer
from eegnn.analysis.oracle import oracle, oracle_of_run
from eegnn.train.run import RunFolder
from tests.analysis.runs import trained
from tests.graphs import quick
from tests.train.problems import node_problem, regression_problem

L, UNITS, CLASSES = 5, 30, 3
PICKS: tuple[Literal["earliest", "latest"], ...] = ("earliest", "latest")


def random_outputs(seed: int) -> tuple[LayerOutputs, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    out = torch.randn(L, UNITS, CLASSES, generator=generator)
    own = torch.randint(1, L + 1, (UNITS,), generator=generator)
    y = torch.randint(CLASSES, (UNITS,), generator=generator)
    return with_own(out, own.tolist()), y


def with_own(out: Tensor, own: list[int]) -> LayerOutputs:
    own_out = torch.stack([out[layer - 1, unit] for unit, layer in enumerate(own)])
    return LayerOutputs(out, None, own_out, torch.tensor(own))


def said(outputs: LayerOutputs, layer: int, unit: int) -> int:
    return int(outputs.out[layer - 1, unit].argmax())


@quick
@given(st.integers(0, 10**6), st.sampled_from(PICKS))
def test_the_oracle_is_that_of_the_paper(seed: int, pick: Literal["earliest", "latest"]) -> None:
    outputs, y = random_outputs(seed)
    found = oracle(outputs, y, None, "accuracy", pick)
    order = range(1, L + 1) if pick == "earliest" else range(L, 0, -1)
    correct = 0
    for unit in range(UNITS):
        right = [layer for layer in order if said(outputs, layer, unit) == y[unit]]
        assert found.layer[unit] == (right[0] if right else L)
        correct += bool(right)
    assert found.score == found.right_somewhere == pytest.approx(correct / UNITS)
    assert found.cost == pytest.approx(float(found.layer.double().mean()) / L)


@quick
@given(st.integers(0, 10**6), st.sampled_from(PICKS))
def test_no_exits_are_more_accurate_than_the_oracles(seed: int, pick: Any) -> None:
    outputs, y = random_outputs(seed)
    index = torch.arange(0, UNITS, 2)
    found = oracle(outputs, y, index, "accuracy", pick)
    assert found.layer.shape == index.shape
    for layer in range(1, L + 1):
        right = [said(outputs, layer, unit) == y[unit] for unit in index.tolist()]
        assert found.score >= sum(right) / len(index)
        if layer == L:
            assert found.full_score == found.right_at_end == pytest.approx(sum(right) / len(index))
    assert found.score >= found.own_score


def two_logits(margins: list[list[float]]) -> Tensor:
    """Outputs whose second logit is ahead by these margins ``[L, U]``."""
    margin = torch.tensor(margins)
    return torch.stack([-margin / 2, margin / 2], dim=-1)


def test_the_earliest_right_layer_may_rank_worse_than_full_depth() -> None:
    # Everyone but unit 3 is right at both layers; unit 3 is wrong at both. The margins of the
    # second class stand above that of unit 3 at the end, and below it at the start.
    y = torch.tensor([0, 1, 1, 0])
    out = two_logits([[-0.1, 0.1, 0.1, 0.6], [-0.1, 1.0, 2.0, 0.5]])
    outputs = with_own(out, [1, 2, 1, 2])
    earliest, latest = (oracle(outputs, y, None, "roc_auc", pick) for pick in PICKS)
    assert earliest.layer.tolist() == [1, 1, 1, 2]
    assert latest.layer.tolist() == [2, 2, 2, 2]
    assert earliest.full_score == latest.full_score == latest.score == 1.0
    assert earliest.score == pytest.approx(2 / 4)
    assert earliest.gap_closed is None
    assert latest.gap_closed is None
    assert earliest.right_somewhere == earliest.right_at_end == 0.75


@pytest.mark.parametrize(("own", "closed"), [([2, 2, 2], 0.0), ([1, 2, 1], 1.0), ([1, 2, 2], 0.5)])
def test_the_gap_closed_by_the_models_own_exits(own: list[int], closed: float) -> None:
    # Units 0 and 2 are right at layer 1 only, unit 1 at layer 2 only.
    out = two_logits([[1.0, -1.0, 1.0], [-1.0, 1.0, -1.0]])
    found = oracle(with_own(out, own), torch.tensor([1, 1, 1]), None, "accuracy")
    assert found.score == 1.0
    assert found.full_score == pytest.approx(1 / 3)
    assert found.gap_closed == pytest.approx(closed)
    assert found.own_cost == pytest.approx(sum(own) / 3 / 2)


@pytest.mark.parametrize("y", [torch.zeros(UNITS, 1), torch.zeros(3, dtype=torch.int64)])
def test_labels_must_be_classes(y: Tensor) -> None:
    outputs, _ = random_outputs(0)
    with pytest.raises(ValueError, match="the class of each unit"):
        oracle(outputs, y, None, "accuracy")


def test_there_are_two_picks() -> None:
    with pytest.raises(ValueError, match="pick must be one of"):
        oracle(*random_outputs(0), None, "accuracy", "median")  # type: ignore[arg-type]


@pytest.mark.parametrize("model", ["eegnn", "sasgnn"])
def test_the_oracle_of_a_run_is_that_of_its_test_units(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = node_problem()
    run = trained(tmp_path / "run", problem, monkeypatch, model)
    graph = problem.graphs[0]
    outputs = outputs_by_layer(RunFolder(run).model(), graph.x, graph.edge_index)
    for pick in PICKS:
        found = oracle_of_run(run, pick=pick)
        truth = oracle(outputs, graph.y, problem.test, "roc_auc", pick)
        assert torch.equal(found.layer, truth.layer)
        assert found.score == truth.score
        summary = RunFolder(run).summary()
        assert summary is not None
        assert found.own_score == summary["test"]


def test_a_run_without_classes_has_no_oracle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = trained(tmp_path / "run", regression_problem(), monkeypatch)
    with pytest.raises(ValueError, match="the class of each unit"):
        oracle_of_run(run)
