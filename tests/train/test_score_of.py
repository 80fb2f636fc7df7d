import math

import pytest
import torch

from eegnn.train.metrics import score_of


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
