"""The figures that are reported, by scikit-learn."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from sklearn.metrics import average_precision_score, f1_score, roc_auc_score
from torch import Tensor


def roc_auc(out: Tensor, y: Tensor) -> float:
    """Area under the ROC curve, from two logits; or from one of each label, as their mean."""
    scores = out[:, 1] - out[:, 0] if y.dim() == 1 else out
    return float(roc_auc_score(y.numpy(), scores.numpy()))


def accuracy(out: Tensor, y: Tensor) -> float:
    """Share of units whose largest logit is right."""
    return float((out.argmax(dim=-1) == y).double().mean())


def average_precision(out: Tensor, y: Tensor) -> float:
    """Average precision, averaged over labels that have both kinds of cases."""
    both = ((y > 0).any(dim=0) & (y <= 0).any(dim=0)).nonzero().view(-1).tolist()
    scores = [average_precision_score(y[:, k].numpy(), out[:, k].numpy()) for k in both]
    return float(np.mean(scores)) if scores else float("nan")


def macro_f1(out: Tensor, y: Tensor) -> float:
    """F1, averaged over classes."""
    return float(f1_score(y.numpy(), out.argmax(dim=-1).numpy(), average="macro"))


def mae(out: Tensor, y: Tensor) -> float:
    """Return the mean absolute error over all units and targets."""
    return float((out - y).abs().mean())


def mse(out: Tensor, y: Tensor) -> float:
    """Return the mean squared error over all units and targets."""
    return float((out - y).square().mean())


def hits(out: Tensor, y: Tensor, k: int = 20) -> float:
    """Share of links whose score is above that of the ``k``-th best pair without one, as in OGB.

    With fewer such pairs than ``k``, all links count.
    """
    links, others = _of_links(out, y)
    if others.numel() < k:
        return 1.0
    return float((links > others.topk(k).values[-1]).double().mean())


def mean_reciprocal_rank(out: Tensor, y: Tensor) -> float:
    """The mean over links of 1 / rank among all pairs without one; those with an equal score count
    by half.
    """
    links, others = _of_links(out, y)
    others = others.sort().values
    above = others.numel() - torch.searchsorted(others, links, right=True)
    not_below = others.numel() - torch.searchsorted(others, links)
    return float((1 / (1 + (above + not_below) / 2)).double().mean())


def _of_links(out: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Return the scores of links, and those of pairs without one, from ``[P, 1]`` or two logits."""
    scores = out[:, -1] - out[:, 0] if out.size(1) == 2 else out[:, 0]
    is_link = y.view(-1) > 0
    return scores[is_link], scores[~is_link]


METRICS: dict[str, Callable[[Tensor, Tensor], float]] = {
    "roc_auc": roc_auc,
    "accuracy": accuracy,
    "ap": average_precision,
    "f1": macro_f1,
    "mae": mae,
    "mse": mse,
    "hits@20": hits,
    "mrr": mean_reciprocal_rank,
}
#: Where less is better.
ERRORS = ("mae", "mse")


def score_of(out: Tensor, y: Tensor, metric: str, scale: float = 1.0) -> float:
    """Return a metric of outputs ``[U, C]``; not a number where one of them is not finite.

    Outputs and labels are multiplied by ``scale``, that of the problem. Both may be on any device.
    """
    out, y = out.cpu().float(), y.cpu()
    if not bool(out.isfinite().all()):  # a comparison would take it for some class
        return math.nan
    return METRICS[metric](out * scale, y * scale)


def better(metric: str, new: float, old: float | None) -> bool:
    """Whether ``new`` is strictly better; what is not a number never is."""
    if old is None:
        return not np.isnan(new)
    return new < old if metric in ERRORS else new > old
