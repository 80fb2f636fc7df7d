"""Choose the exit rule of a trained model on its validation units."""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from eegnn import _check, _json
from eegnn.analysis.exit_rule import (
    Curve,
    Point,
    accuracy_cost_curve,
    point_of,
    replay,
    spread_thresholds,
)
from eegnn.analysis.layers import LayerOutputs, outputs_by_part
from eegnn.analysis.run import open_run
from eegnn.compute import CPU, Compute
from eegnn.io import write_atomically
from eegnn.nn.exit_model import ExitModel
from eegnn.train.evaluate import evaluate
from eegnn.train.metrics import ERRORS, better
from eegnn.train.run import RunFolder

#: Shares of the budget for which a rule is suggested.
COSTS = (0.25, 0.35, 0.5, 0.75)
#: Share of the score of the own rule that :meth:`Calibration.keeping` keeps.
KEPT = 0.99
PARTS = ("val", "test")
#: Thresholds that are combined with limits.
STEPS = 20


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
    """

    metric: str
    num_layers: int
    weights: str  #: checksum of the model's files, to tell whether the run was continued since
    val: Curve  #: over thresholds without a limit, as ``test``
    test: Curve
    #: The pairs that score better on validation units than all that cost less, by ascending cost.
    best: tuple[Choice, ...]

    @property
    def own(self) -> Choice:
        """The model's own rule."""
        return Choice(self.val.own, self.test.own)

    @property
    def full(self) -> Choice:
        """No unit leaves before the last layer."""
        return Choice(self.val.full, self.test.full)

    @property
    def lowest_cost(self) -> float:
        """What the cheapest rule costs on validation units: every unit takes at least a step."""
        return self._by_cost()[0].val.cost

    def for_cost(self, target: float) -> Choice:
        """Return the rule with the best validation score among those that cost at most ``target``,
        a share of the budget in [0, 1].

        The model's own rule competes; of equally good rules the cheapest is taken. The best of many
        scores on the same units is a little optimistic: quote the test score.
        """
        _check.number("target", target, 0, 1)
        affordable = [choice for choice in self._by_cost() if choice.val.cost <= target]
        if not affordable:
            raise ValueError(
                f"target must be at least {self.lowest_cost:g}, the lowest cost, got {target}"
            )
        return max(affordable, key=self._gain)

    def for_score(self, tolerance: float = 0.0) -> Choice:
        """Return the cheapest rule that scores at most by ``tolerance`` worse than the own rule.

        It is compared with the own rule, not with the best one: the own rule was not chosen on
        these units, so its score is not optimistic.
        """
        _check.number("tolerance", tolerance, 0)
        floor = self._gain(self.own) - tolerance
        return next(choice for choice in self._by_cost() if self._gain(choice) >= floor)

    def keeping(self, share: float = KEPT) -> Choice:
        """Return the cheapest rule that keeps this share of the own rule's score; an error may be
        larger by the rest."""
        return self.for_score((1 - share) * abs(self.val.own.score))

    def suggestions(self, costs: Sequence[float] = COSTS) -> dict[str, Any]:
        """Return the rules, those for costs that a rule can have among them, for JSON."""
        affordable = [cost for cost in costs if cost >= self.lowest_cost]
        return {
            "own": asdict(self.own),
            "full": asdict(self.full),
            "same_score": asdict(self.for_score()),
            "keeps": {"share": KEPT, **asdict(self.keeping())},
            "cost": [{"target": cost, **asdict(self.for_cost(cost))} for cost in affordable],
        }

    def as_dict(self, costs: Sequence[float] = COSTS) -> dict[str, Any]:
        """Return the fields and :meth:`suggestions`, for JSON."""
        return {"suggestions": self.suggestions(costs), **asdict(self)}

    def _by_cost(self) -> list[Choice]:
        """Return all rules by ascending cost, the own rule first among equals."""
        return sorted((self.own, *self.best), key=lambda choice: choice.val.cost)

    def _gain(self, choice: Choice) -> float:
        """Return the validation score, higher for better rules."""
        score = choice.val.score
        if math.isnan(score):
            return -math.inf
        return -score if self.metric in ERRORS else score


def calibrate_run(run: Path, data_dir: Path | None = None, compute: Compute = CPU) -> Calibration:
    """Measure what the exit rules of a run, whose model has exits, cost and score.

    Nothing is written.
    """
    RunFolder(run).config()  # raises an error where there is no run
    weights = _checksum(run)  # of the files before they are read, should the run go on meanwhile
    model, batches = open_run(run, data_dir, compute)
    if not isinstance(model, ExitModel):
        raise ValueError(f"{run} must hold a model with exits, such as EEGNN, got {model!r}")
    with compute.autocast():
        problem, outputs = batches.problem, outputs_by_part(model, batches, PARTS)
    val_outputs = outputs["val"][0]

    def measure(part: str, threshold: float | None, limit: int | None) -> Point:
        if val_outputs.replayable:
            return point_of(*outputs[part], problem.metric, problem.scale, threshold, limit)
        found = evaluate(model, batches, (part,), exit_threshold=threshold, max_layers=limit)[part]
        return Point(threshold, limit, float(found.exits.cost), found.score)

    thresholds, rules = spread_thresholds(val_outputs), _rules(val_outputs)
    if not val_outputs.replayable:  # a pass of the model for each rule, so there are fewer
        thresholds = spread_thresholds(val_outputs, STEPS)
        limits = (None, *(max(model.num_layers * quarter // 4, 1) for quarter in (1, 2, 3)))
        rules = itertools.product((None, *thresholds), limits)

    def curve(part: str) -> Curve:
        return accuracy_cost_curve(problem.metric, thresholds, lambda t: measure(part, t, None))

    points = sorted((measure("val", *rule) for rule in rules), key=lambda point: point.cost)
    best: list[Choice] = []
    for point in points:
        if better(problem.metric, point.score, best[-1].val.score if best else None):
            best.append(Choice(point, measure("test", point.threshold, point.max_layers)))
    if not best:
        raise ValueError(f"{run} cannot be calibrated: no exit rule has a validation score")
    return Calibration(
        problem.metric, model.num_layers, weights, curve("val"), curve("test"), tuple(best)
    )


def write_calibration(run: Path, calibration: Calibration) -> Path:
    """Write ``calibration.json`` into the folder of a run, and return its path."""
    path = run / "calibration.json"
    write_atomically(path, _json.to_file(calibration.as_dict()))
    return path


def read_calibration(run: Path) -> Calibration | None:
    """Read ``calibration.json``; ``None`` where there is none, or it is of other weights."""
    path = run / "calibration.json"
    if not path.is_file():
        return None
    found = _json.read(path, Calibration, ": remove it and calibrate again")
    return found if found.weights == _checksum(run) else None


def _rules(outputs: LayerOutputs) -> Iterator[tuple[float | None, int | None]]:
    """Thresholds, the own rule first, with every limit that changes something."""
    for threshold in (None, *spread_thresholds(outputs, STEPS)):
        _, layer = replay(outputs, threshold)
        yield threshold, None
        yield from ((threshold, limit) for limit in range(1, int(layer.max())))


def _checksum(run: Path) -> str:
    weights = RunFolder(run).model_path
    described = weights.with_suffix(".json")
    return hashlib.sha256(weights.read_bytes() + described.read_bytes()).hexdigest()
