"""The reported figure of some outputs."""

from __future__ import annotations

import math

from torch import Tensor

from eegnn.train.metrics import METRICS


def score_of(out: Tensor, y: Tensor, metric: str, scale: float = 1.0) -> float:
    """Return a metric as training reports it; not a number where an output is not finite.

    Args:
        out: ``[U, C]``.
        y: labels.
        metric: a name in :data:`~eegnn.train.metrics.METRICS`.
        scale: of the problem, by which outputs and labels are multiplied.
    """
    out = out.float()
    if not bool(out.isfinite().all()):
        return math.nan
    return METRICS[metric](out * scale, y * scale)
