"""Choose the exit rule of a trained model on its validation units."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from torch import Tensor

from eegnn import _check
from eegnn.analysis.exit_rule import Curve, Point, point_of, replay, spread_thresholds
from eegnn.analysis.layers import LayerOutputs, has_exits, outputs_by_part
from eegnn.analysis.run import open_run
from eegnn.data.problem import Problem
from eegnn.io import write_atomically
from eegnn.nn.model import GraphModel
from eegnn.train.batches import Batches
from eegnn.train.evaluate import evaluate
from eegnn.train.metrics import ERRORS, better
from eegnn.train.run import RunFolder

#: Shares of the budget for which a rule is suggested.
COSTS = (0.25, 0.35, 0.5, 0.75)
#: Share of the score of the own rule that :meth:`Calibration.keeping` keeps.
KEPT = 0.99
PARTS = ("val", "test")
#: From a part, a threshold and a limit to what they cost and score.
Measure = Callable[[str, float | None, int | None], Point]


def for_cost(curve: Curve, target: float) -> Point:
    """Return the point with the best score among those that cost at most ``target``.

    The model's own rule competes; of equally good points the cheapest is taken. The best of many
    scores on the same units is a little optimistic: quote that of units that had no part in the
    choice.

    Args:
        curve: on validation units.
        target: share of the budget, in [0, 1].
    """
    _check.number("target", target, 0, 1)
    affordable = [point for point in _by_cost(curve) if point.cost <= target]
    if not affordable:
        lowest = _by_cost(curve)[0].cost
        raise ValueError(f"target must be at least {lowest:g}, the lowest cost, got {target}")
    return (_improving(curve.metric, affordable) or affordable)[-1]


def for_score(curve: Curve, tolerance: float = 0.0) -> Point:
    """Return the cheapest point that scores no worse than the model's own rule.

    The own rule is what is held against, not the best point of the curve: it was not chosen on
    these units, so its score is not optimistic. It is its own answer where nothing is cheaper.

    Args:
        curve: on validation units.
        tolerance: how much worse the score may be, in units of the metric.
    """
    _check.number("tolerance", tolerance, 0)
    sign = -1 if curve.metric in ERRORS else 1
    floor = sign * curve.own.score - tolerance
    return next(p for p in _by_cost(curve) if p is curve.own or sign * p.score >= floor)


@dataclass(frozen=True)
class Choice:
    """The same rule on validation units, where it was chosen, and on test units."""

    val: Point
    test: Point


@dataclass(frozen=True)
class Calibration:
    """What the exit rules of a run cost and score.

    Choices are made among pairs of a threshold and a limit ``max_layers``: there are more of them
    than thresholds alone, and a limit saves work for certain where nodes that left go on evolving.

    Attributes:
        metric: of the scores.
        num_layers: the budget.
        weights: checksum of the model's files, to tell whether the run has gone on since.
        val, test: curves over the same thresholds, without a limit.
        best: the pairs that score better on validation units than all that cost less there, by
            ascending cost.
    """

    metric: str
    num_layers: int
    weights: str
    val: Curve
    test: Curve
    best: tuple[Choice, ...]

    def for_cost(self, target: float) -> Choice:
        """:func:`for_cost`, among ``best``."""
        return self._choose(lambda curve: for_cost(curve, target))

    def for_score(self, tolerance: float = 0.0) -> Choice:
        """:func:`for_score`, among ``best``."""
        return self._choose(lambda curve: for_score(curve, tolerance))

    def keeping(self, share: float = KEPT) -> Choice:
        """The cheapest rule that keeps this share of the own rule's score; an error may be larger
        by the rest."""
        return self.for_score((1 - share) * abs(self.val.own.score))

    @property
    def lowest_cost(self) -> float:
        """What the cheapest rule costs on validation units: everyone takes at least a step."""
        return min(point.cost for point in (self.val.own, *(c.val for c in self.best)))

    def suggestions(self, costs: Sequence[float] = COSTS, tolerance: float = 0.0) -> dict[str, Any]:
        """For JSON: the rules for these costs and this tolerance, beside the own one.

        Costs below :attr:`lowest_cost` are left out.
        """
        affordable = [cost for cost in costs if cost >= self.lowest_cost]
        return {
            "own": asdict(Choice(self.val.own, self.test.own)),
            "full": asdict(Choice(self.val.full, self.test.full)),
            "same_score": {"tolerance": tolerance, **asdict(self.for_score(tolerance))},
            "keeps": {"share": KEPT, **asdict(self.keeping())},
            "cost": [{"target": cost, **asdict(self.for_cost(cost))} for cost in affordable],
        }

    def as_dict(self, costs: Sequence[float] = COSTS, tolerance: float = 0.0) -> dict[str, Any]:
        """For JSON: the fields, and :meth:`suggestions`."""
        return {"suggestions": self.suggestions(costs, tolerance), **asdict(self)}

    def _choose(self, choose: Callable[[Curve], Point]) -> Choice:
        test_of = {choice.val: choice.test for choice in self.best}
        test_of[self.val.own] = self.test.own
        val = choose(replace(self.val, points=tuple(choice.val for choice in self.best)))
        return Choice(val, test_of[val])


def calibrate_run(run: Path, data_dir: Path | None = None) -> Calibration:
    """Find out what the exit rules of a run cost and score. Nothing is written.

    Args:
        run: the folder of the run.
        data_dir: the data folder; ``None`` for the default.

    Raises:
        ValueError: the model has no exits.
    """
    RunFolder(run).config()  # says so where there is no run
    weights = _checksum(run)
    model, batches = open_run(run, data_dir)
    if not has_exits(model):
        raise ValueError(f"{run} must hold a model with exits, such as EEGNN, got {model!r}")
    outputs = outputs_by_part(model, batches, PARTS)
    seen = outputs["val"][0]
    if seen.replayable:
        measure = _replaying(outputs, batches.problem)
        thresholds, rules = spread_thresholds(seen), _rules(seen)
    else:  # a pass of the model for each rule, so there are fewer
        measure = _predicting(model, batches)
        thresholds = spread_thresholds(seen, steps=20)
        limits = (None, *(max(model.num_layers * quarter // 4, 1) for quarter in (1, 2, 3)))
        rules = itertools.product((None, *thresholds), limits)
    metric = batches.problem.metric
    val, test = (
        Curve(
            metric,
            points=tuple(measure(part, threshold, None) for threshold in thresholds),
            own=measure(part, None, None),
            full=measure(part, 1.0, None),
        )
        for part in PARTS
    )
    candidates = [measure("val", *rule) for rule in rules]
    best = _improving(metric, sorted(candidates, key=lambda point: point.cost))
    choices = (Choice(point, measure("test", point.threshold, point.max_layers)) for point in best)
    return Calibration(metric, model.num_layers, weights, val, test, best=tuple(choices))


def write_calibration(run: Path, calibration: Calibration) -> Path:
    """Write ``calibration.json`` into the folder of a run, and return its path."""
    path = run / "calibration.json"
    write_atomically(path, (json.dumps(calibration.as_dict(), indent=2) + "\n").encode())
    return path


def read_calibration(run: Path) -> Calibration | None:
    """Read ``calibration.json``; ``None`` where there is none, or the weights are others now."""
    path = run / "calibration.json"
    if not path.is_file():
        return None
    try:
        found = TypeAdapter(Calibration).validate_python(json.loads(path.read_bytes()))
    except ValueError as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"{path} is damaged ({reason}): remove it and calibrate again") from error
    return found if found.weights == _checksum(run) else None


def _replaying(outputs: dict[str, tuple[LayerOutputs, Tensor]], problem: Problem) -> Measure:
    def measure(part: str, threshold: float | None, limit: int | None) -> Point:
        return point_of(*outputs[part], problem.metric, problem.scale, threshold, limit)

    return measure


def _predicting(model: GraphModel, batches: Batches) -> Measure:
    def measure(part: str, threshold: float | None, limit: int | None) -> Point:
        knobs = {"exit_threshold": threshold, "max_layers": limit}
        found = evaluate(model, batches, (part,), **knobs)[part]
        return Point(threshold, limit, float(found.exits.cost), found.score)

    return measure


def _rules(outputs: LayerOutputs) -> Iterator[tuple[float | None, int | None]]:
    """Thresholds, the own rule first, with every limit that changes something."""
    for threshold in (None, *spread_thresholds(outputs, steps=20)):
        _, layer = replay(outputs, threshold)
        yield threshold, None
        yield from ((threshold, limit) for limit in range(1, int(layer.max())))


def _by_cost(curve: Curve) -> list[Point]:
    """All points by ascending cost, the own rule first among equals."""
    return sorted((curve.own, *curve.points), key=lambda point: point.cost)


def _improving(metric: str, points: Iterable[Point]) -> list[Point]:
    """Those points that are better than all before them."""
    best: list[Point] = []
    for point in points:
        if better(metric, point.score, best[-1].score if best else None):
            best.append(point)
    return best


def _checksum(run: Path) -> str:
    weights = RunFolder(run).model_path
    described = weights.with_suffix(".json")
    return hashlib.sha256(weights.read_bytes() + described.read_bytes()).hexdigest()
