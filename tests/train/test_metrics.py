from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from eegnn.train.metrics import ERRORS, METRICS, better, score_of

NAN = math.nan


def logits(*differences: float) -> Tensor:
    """Two logits that differ by so much."""
    return torch.tensor([[1.0, 1.0 + d] for d in differences])


def one_hot(*classes: int, count: int = 3) -> Tensor:
    return torch.eye(count)[list(classes)]


def test_roc_auc_is_the_share_of_pairs_in_the_right_order() -> None:
    y = torch.tensor([0, 0, 1, 1])
    assert METRICS["roc_auc"](logits(-2, 1, 0, 3), y) == pytest.approx(3 / 4)
    assert METRICS["roc_auc"](logits(0, 1, 2, 3), y) == pytest.approx(1)
    assert METRICS["roc_auc"](logits(0, 0, 0, 0), y) == pytest.approx(1 / 2)


def test_roc_auc_looks_at_the_difference_of_the_logits() -> None:
    out = torch.tensor([[0.0, 1.0], [5.0, 5.5]])
    assert METRICS["roc_auc"](out, torch.tensor([1, 0])) == 1.0


def test_accuracy_is_the_share_of_largest_logits_that_are_right() -> None:
    out = torch.tensor([[3.0, 1.0, 2.0], [0.0, 1.0, 2.0], [0.0, -1.0, -2.0]])
    assert METRICS["accuracy"](out, torch.tensor([0, 1, 0])) == pytest.approx(2 / 3)


def test_average_precision_is_averaged_over_labels() -> None:
    # Label 0, ranked: hit, miss, hit: (1/1 + 2/3) / 2. Label 1, ranked: miss, hit, miss: 1/2.
    out = torch.tensor([[3.0, 1.0], [2.0, 3.0], [1.0, 2.0]])
    y = torch.tensor([[1.0, 0.0], [0.0, 0.0], [1.0, 1.0]])
    assert METRICS["ap"](out, y) == pytest.approx((5 / 6 + 1 / 2) / 2)


def test_average_precision_leaves_out_labels_of_one_kind() -> None:
    out = torch.tensor([[3.0, 1.0, 0.0], [2.0, 3.0, 0.0]])
    y = torch.tensor([[0.0, 1.0, 0.0], [1.0, 1.0, 0.0]])
    assert METRICS["ap"](out, y) == pytest.approx(1 / 2)
    assert math.isnan(METRICS["ap"](out, torch.ones(2, 3)))


def test_macro_f1_weighs_classes_alike() -> None:
    # Class 0: 2 right of 2 found and 3 there: F1 = 4/5. Class 1: 1 of 2 and 1: 2/3. Class 2: 1.
    out = one_hot(0, 0, 1, 1, 2)
    y = torch.tensor([0, 0, 0, 1, 2])
    assert METRICS["f1"](out, y) == pytest.approx((4 / 5 + 2 / 3 + 1) / 3)


def test_errors_are_means_over_all_entries() -> None:
    out, y = torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([[1.0, 0.0], [0.0, 5.0]])
    assert METRICS["mae"](out, y) == pytest.approx((0 + 2 + 3 + 1) / 4)
    assert METRICS["mse"](out, y) == pytest.approx((0 + 4 + 9 + 1) / 4)


@pytest.mark.parametrize("metric", METRICS)
def test_better_points_the_right_way(metric: str) -> None:
    high, low = (0.1, 0.2) if metric in ERRORS else (0.2, 0.1)
    assert better(metric, high, low)
    assert not better(metric, low, high)


@pytest.mark.parametrize("metric", METRICS)
def test_better_is_strict(metric: str) -> None:
    assert not better(metric, 0.5, 0.5)


@pytest.mark.parametrize("metric", METRICS)
def test_what_is_not_a_number_is_never_better(metric: str) -> None:
    assert not better(metric, NAN, None)
    assert not better(metric, NAN, 0.5)
    assert better(metric, 0.0, None)


def test_exactly_the_errors_are_better_when_smaller() -> None:
    assert {name for name in METRICS if better(name, 0.0, 1.0)} == {"mae", "mse"}


def test_errors_are_on_the_scale_of_the_problem() -> None:
    out, y = torch.tensor([[1.0], [2.0]]), torch.tensor([[2.0], [2.0]])
    assert score_of(out, y, "mae") == pytest.approx(0.5)
    assert score_of(out, y, "mae", scale=10.0) == pytest.approx(5.0)


def test_classes_are_scored_by_the_metric() -> None:
    out, y = torch.tensor([[0.0, 1.0], [0.5, 0.0], [0.0, 0.1]]), torch.tensor([1, 0, 0])
    assert score_of(out, y, "accuracy") == pytest.approx(2 / 3)
    assert score_of(out, y, "roc_auc") == 1.0


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_what_is_not_finite_has_no_score(bad: float) -> None:
    assert math.isnan(score_of(torch.tensor([[bad, 1.0]]), torch.tensor([1]), "accuracy"))


def test_roc_auc_of_one_score_a_label_is_that_of_two_logits() -> None:
    y = torch.tensor([0, 0, 1, 1])
    two = logits(-2, 1, 0, 3)
    one = (two[:, 1] - two[:, 0]).unsqueeze(-1)
    assert METRICS["roc_auc"](one, y.float().unsqueeze(-1)) == METRICS["roc_auc"](two, y)


def scored_links(seed: int) -> tuple[Tensor, Tensor]:
    """Scores of 30 links and 60 other pairs, in no order, with many ties."""
    generator = torch.Generator().manual_seed(seed)
    y = (torch.randperm(90, generator=generator) < 30).float().unsqueeze(-1)
    return torch.randint(0, 40, (90, 1), generator=generator).float() + 3 * y, y


@pytest.mark.parametrize("seed", range(5))
def test_hits_and_reciprocal_ranks_agree_with_counting(seed: int) -> None:
    out, y = scored_links(seed)
    links = [s for s, label in zip(out[:, 0].tolist(), y[:, 0].tolist(), strict=True) if label]
    others = [s for s, label in zip(out[:, 0].tolist(), y[:, 0].tolist(), strict=True) if not label]
    bar = sorted(others, reverse=True)[19]
    assert METRICS["hits@20"](out, y) == pytest.approx(sum(s > bar for s in links) / len(links))
    ranks = [1 + sum(o > s for o in others) + sum(o == s for o in others) / 2 for s in links]
    expected = sum(1 / rank for rank in ranks) / len(ranks)
    assert METRICS["mrr"](out, y) == pytest.approx(expected, abs=1e-6)


def test_hits_agree_with_those_of_ogb() -> None:
    evaluator = pytest.importorskip("ogb.linkproppred").Evaluator("ogbl-ddi")  # hits@20
    out, y = scored_links(7)
    is_link = y[:, 0] == 1
    found = evaluator.eval({"y_pred_pos": out[is_link, 0], "y_pred_neg": out[~is_link, 0]})
    assert METRICS["hits@20"](out, y) == pytest.approx(found["hits@20"])


def test_with_few_other_pairs_every_link_is_a_hit() -> None:
    assert METRICS["hits@20"](torch.zeros(3, 1), torch.tensor([[1.0], [0.0], [0.0]])) == 1.0
