"""Any exit rule applied without running the model again, and what it costs and scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from eegnn import _check
from eegnn.analysis.layers import LayerOutputs
from eegnn.nn.exit_rule import wants_to_leave
from eegnn.train.metrics import score_of
from eegnn.train.schemas import Number


@dataclass(frozen=True)
class Point:
    """What an exit rule costs and scores."""

    threshold: float | None  #: its ``exit_threshold``; ``None`` for the model's own rule
    max_layers: int | None  #: ``None`` for the whole budget
    cost: float  #: mean exit layer as a share of the budget L
    score: Number  #: in the metric of the problem

    @property
    def knobs(self) -> dict[str, Any]:
        """The rule, for :meth:`~eegnn.nn.model.GraphModel.predict`."""
        return {"exit_threshold": self.threshold, "max_layers": self.max_layers}


@dataclass(frozen=True)
class Curve:
    """Score against cost of several exit rules, on the same units."""

    metric: str
    points: tuple[Point, ...]  #: by ascending threshold, and so by never descending cost
    own: Point  #: the model's own rule
    full: Point  #: every unit takes all layers


def replay(
    outputs: LayerOutputs, exit_threshold: float | None = None, max_layers: int | None = None
) -> tuple[Tensor, Tensor]:
    r"""Apply an exit rule to the outputs of all layers.

    A unit leaves at the first layer at which its probability of having left reaches the threshold
    (:func:`~eegnn.nn.exit_rule.wants_to_leave`), and after ``max_layers`` steps at the latest.

    Args:
        outputs: those of a ``replayable`` model.
        exit_threshold: in [0, 1]; ``None`` for the model's own rule.
        max_layers: ``None`` for L.

    Returns:
        Outputs ``[U, C]`` and exit layers ``int64 [U]``, those of
        :meth:`~eegnn.nn.model.GraphModel.predict` with the same arguments.
    """
    if exit_threshold is None and max_layers is None:
        return outputs.own_out, outputs.own_layer
    if not outputs.replayable:
        raise ValueError(
            "outputs must be those of a model with after_exit='evolve': where nodes freeze, "
            "leaving changes the states of their neighbours"
        )
    layer = outputs.own_layer
    if exit_threshold is not None:
        _check.number("exit_threshold", exit_threshold, 0, 1)
        log_stay = _decisions(outputs)
        leaves = wants_to_leave(log_stay, log_stay, exit_threshold)
        layer = 1 + (leaves.cumsum(dim=0) == 0).sum(dim=0)
    if max_layers is not None:
        layer = layer.clamp(max=_check.integer("max_layers", max_layers, at_least=1))
    return outputs.at(layer), layer


def spread_thresholds(outputs: LayerOutputs, steps: int = 100) -> list[float]:
    """Choose thresholds between which the cost changes by about ``1 / steps``.

    A unit takes another step where its probability of having left is below the threshold. So
    beyond the first step, the cost of a threshold is the share of all those probabilities below it,
    and thresholds at their quantiles have evenly spaced costs. Each lies in the middle between two
    values, where rounding cannot change which units leave. 0 (all leave after one step) and 1 (none
    leaves before the last) are always among them.
    """
    log_stay = _decisions(outputs).cpu().double()
    left = np.sort(-np.expm1(log_stay.numpy().ravel()))
    left = left[~np.isnan(left)]
    cut = np.linspace(0, left.size, steps + 1).round().astype(int)
    cut = cut[(cut > 0) & (cut < left.size)]
    between = (left[cut - 1] + left[cut]) / 2
    return sorted({0.0, 1.0, *between.tolist()})


def point_of(
    outputs: LayerOutputs,
    y: Tensor,
    metric: str,
    scale: float = 1.0,
    exit_threshold: float | None = None,
    max_layers: int | None = None,
) -> Point:
    """Return the cost of an exit rule by :func:`replay`, and its score by
    :func:`~eegnn.train.metrics.score_of`.
    """
    out, layer = replay(outputs, exit_threshold, max_layers)
    cost = float(layer.cpu().double().mean()) / outputs.num_layers
    return Point(exit_threshold, max_layers, cost, score_of(out, y, metric, scale))


def accuracy_cost_curve(
    metric: str, thresholds: Sequence[float], measure: Callable[[float | None], Point]
) -> Curve:
    """Return score and cost over exit thresholds; ``measure`` returns the point of one, such as
    :func:`point_of` with the arguments before ``exit_threshold`` given.
    """
    points = tuple(measure(threshold) for threshold in sorted(thresholds))
    return Curve(metric, points, own=measure(None), full=measure(1.0))


def _decisions(outputs: LayerOutputs) -> Tensor:
    """``log_stay`` without its last row: after the last step every unit leaves."""
    if outputs.log_stay is None:
        raise ValueError("outputs must be those of a model with exits, such as EEGNN")
    return outputs.log_stay[:-1]
