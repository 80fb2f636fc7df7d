from __future__ import annotations

import itertools
import json
import math
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eegnn.analysis.calibrate import (
    COSTS,
    Calibration,
    Choice,
    calibrate_run,
    read_calibration,
    write_calibration,
)
from eegnn.analysis.exit_rule import Curve, Point
from eegnn.data.problem import Problem
from eegnn.train.batches import Batches
from eegnn.train.evaluate import Evaluation, evaluate
from eegnn.train.run import RunFolder
from tests.analysis.runs import trained
from tests.graphs import quick
from tests.train.problems import graph_problem, node_problem, regression_problem


def accuracy_problem() -> Problem:
    return node_problem(metric="accuracy")


PROBLEMS: dict[str, tuple[Callable[[], Problem], dict[str, Any]]] = {
    "nodes": (node_problem, {}),
    "nodes, accuracy": (accuracy_problem, {}),
    "nodes, frozen": (accuracy_problem, {"after_exit": "freeze"}),
    "graphs": (graph_problem, {}),
    "regression": (regression_problem, {}),
}


@pytest.fixture(scope="module")
def patch() -> Iterator[pytest.MonkeyPatch]:
    with pytest.MonkeyPatch.context() as patch:
        yield patch


@pytest.fixture(scope="module", params=PROBLEMS)
def case(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    patch: pytest.MonkeyPatch,
) -> tuple[Path, Problem, Calibration]:
    make, options = PROBLEMS[request.param]
    problem = make()
    run = trained(tmp_path_factory.mktemp("case") / "run", problem, patch, **options)
    return run, problem, calibrate_run(run)


@pytest.fixture(scope="module")
def nodes(
    tmp_path_factory: pytest.TempPathFactory, patch: pytest.MonkeyPatch
) -> tuple[Path, Calibration]:
    run = trained(tmp_path_factory.mktemp("nodes") / "run", accuracy_problem(), patch)
    before = {path.name: path.read_bytes() for path in run.iterdir()}
    found = calibrate_run(run)
    assert {path.name: path.read_bytes() for path in run.iterdir()} == before  # nothing is written
    return run, found


@pytest.fixture
def run(nodes: tuple[Path, Calibration], tmp_path: Path) -> Path:
    """A copy that may be changed."""
    return Path(shutil.copytree(nodes[0], tmp_path / "run"))


@pytest.fixture(scope="module")
def found(nodes: tuple[Path, Calibration]) -> Calibration:
    return nodes[1]


scores = st.sampled_from([0.1, 0.5, 0.55, 0.9, math.nan])
shares = st.sampled_from([0.0, 0.2, 0.25, 0.5, 0.9, 1.0])


def rules(metric: str, own: Point, *points: Point) -> Calibration:
    """A calibration with these rules, which cost and score the same on both parts."""
    curve = Curve(metric, (), own, own)
    best = tuple(Choice(point, point) for point in points)
    return Calibration(metric, 4, "", curve, curve, best)


@st.composite
def calibrations(draw: st.DrawFn) -> Calibration:
    pairs = draw(st.lists(st.tuples(shares, scores), max_size=8))
    points = [Point(i / 10, None, *pair) for i, pair in enumerate(pairs)]
    own = Point(None, None, draw(shares), draw(scores.filter(lambda score: score == score)))
    return rules(draw(st.sampled_from(["accuracy", "mae"])), own, *points)


def gain(found: Calibration, point: Point) -> float:
    return -point.score if found.metric == "mae" else point.score


def points_of(found: Calibration) -> list[Point]:
    return [found.val.own, *(choice.val for choice in found.best)]


@settings(quick, max_examples=200)
@given(calibrations(), shares)
def test_the_best_affordable_rule_is_chosen(found: Calibration, target: float) -> None:
    affordable = [p for p in points_of(found) if p.cost <= target]
    if not affordable:
        with pytest.raises(ValueError, match="target must be at least"):
            found.for_cost(target)
        return
    chosen = found.for_cost(target).val
    assert chosen in affordable
    for other in affordable:
        if not math.isnan(other.score):
            assert gain(found, chosen) >= gain(found, other)
            if gain(found, chosen) == gain(found, other):
                assert chosen.cost <= other.cost


@settings(quick, max_examples=200)
@given(calibrations(), st.sampled_from([0.0, 0.05, 0.4, 1.0]))
def test_the_cheapest_rule_that_is_good_enough_is_chosen(
    found: Calibration, tolerance: float
) -> None:
    chosen = found.for_score(tolerance).val
    enough = gain(found, found.val.own) - tolerance
    assert gain(found, chosen) >= enough
    good = [p for p in points_of(found) if gain(found, p) >= enough]
    assert chosen.cost == min(p.cost for p in good)


@pytest.mark.parametrize(("metric", "cheap"), [("mae", 0.1), ("accuracy", 0.3)])
def test_what_is_good_enough_depends_on_the_metric(metric: str, cheap: float) -> None:
    better, worse = Point(0.1, None, 0.2, cheap), Point(0.2, None, 0.1, 0.4 - cheap)
    found = rules(metric, Point(None, None, 0.5, 0.2), better, worse)
    assert found.for_score().val is better
    assert found.for_score(tolerance=0.15).val is worse
    assert found.for_cost(0.5).val is better
    assert found.for_cost(0.1).val is worse


def test_the_own_rule_is_kept_where_nothing_is_better() -> None:
    own = Point(None, None, 0.5, 0.9)
    found = rules("accuracy", own, Point(0.5, None, 0.5, 0.9))
    assert found.for_cost(0.5).val is own
    assert found.for_score().val is own


@pytest.mark.parametrize("wrong", [-0.1, 1.1, math.nan])
def test_a_target_is_a_share(wrong: float) -> None:
    with pytest.raises(ValueError, match="target must be in"):
        rules("accuracy", Point(None, None, 0.0, 0.9)).for_cost(wrong)


def test_a_tolerance_is_not_negative() -> None:
    with pytest.raises(ValueError, match="tolerance must be at least 0"):
        rules("accuracy", Point(None, None, 0.0, 0.9)).for_score(-0.1)


def predicted(run: Path, problem: Problem, **knobs: Any) -> dict[str, Evaluation]:
    return evaluate(RunFolder(run).model(), Batches(problem, 5), ("val", "test"), **knobs)


def assert_predicted(run: Path, problem: Problem, val: Point, test: Point) -> None:
    """The model, run by the rule of a point, costs and scores what the point says."""
    assert val.knobs == test.knobs
    found = predicted(run, problem, **val.knobs)
    for part, point in (("val", val), ("test", test)):
        assert point.cost == pytest.approx(float(found[part].exits.cost), abs=1e-6)
        assert point.score == pytest.approx(found[part].score, abs=1e-6)


def test_a_run_is_calibrated_as_it_predicts(case: tuple[Path, Problem, Calibration]) -> None:
    run, problem, found = case
    assert found.metric == problem.metric
    assert found.num_layers == 4
    for name in ("own", "full"):
        assert_predicted(run, problem, getattr(found.val, name), getattr(found.test, name))
    for val, test in list(zip(found.val.points, found.test.points, strict=True))[::5]:
        assert_predicted(run, problem, val, test)
    for choice in found.best:
        assert_predicted(run, problem, choice.val, choice.test)
    assert found.val.full.cost == found.test.full.cost == 1.0


def test_better_rules_cost_more(case: tuple[Path, Problem, Calibration]) -> None:
    found = case[2]
    costs = [choice.val.cost for choice in found.best]
    gains = [gain(found, choice.val) for choice in found.best]
    assert costs[0] == 1 / found.num_layers
    assert all(a < b for a, b in itertools.pairwise(costs))
    assert all(a < b for a, b in itertools.pairwise(gains))


def test_no_limit_on_the_own_rule_beats_the_choice(
    case: tuple[Path, Problem, Calibration],
) -> None:
    run, problem, found = case
    for limit in (None, 1, 2, 3, 4):
        part = predicted(run, problem, max_layers=limit)["val"]
        choice = found.for_cost(min(float(part.exits.cost) + 1e-6, 1.0))
        beaten = choice.val.score <= part.score + 1e-6
        assert beaten if found.metric == "mae" else choice.val.score >= part.score - 1e-6


def test_choices_look_at_validation_units_only(found: Calibration) -> None:
    for target in (0.25, 0.3, 0.6, 1.0):
        choice = found.for_cost(target)
        assert choice.val.cost <= target
        assert choice.test.knobs == choice.val.knobs
    choice = found.for_score()
    assert choice.val.score >= found.val.own.score
    assert choice.val.cost <= found.val.own.cost
    assert found.for_score(tolerance=1.0).val.cost == 1 / found.num_layers


def test_a_calibration_is_read_as_it_was_written(run: Path, found: Calibration) -> None:
    assert read_calibration(run) is None
    path = write_calibration(run, found)
    assert path == run / "calibration.json"
    assert read_calibration(run) == found
    suggested = json.loads(path.read_text())["suggestions"]
    assert [entry["target"] for entry in suggested["cost"]] == list(COSTS)
    assert suggested["cost"][2]["val"]["score"] == found.for_cost(0.5).val.score
    assert suggested["same_score"]["test"]["cost"] == found.for_score().test.cost


def test_suggestions_are_for_the_costs_asked_for(found: Calibration) -> None:
    # Of four layers everyone takes one: nothing costs less than a quarter.
    suggested = found.as_dict(costs=[0.2, 0.4])["suggestions"]
    assert [entry["target"] for entry in suggested["cost"]] == [0.4]
    assert suggested["same_score"]["val"]["cost"] == found.for_score().val.cost


def test_a_calibration_of_other_weights_is_not_used(run: Path, found: Calibration) -> None:
    write_calibration(run, found)
    weights = run / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"!")
    assert read_calibration(run) is None


@pytest.mark.parametrize("content", ["{", "{}", "[]", '{"metric": 3}'])
def test_a_damaged_calibration_is_named(content: str, run: Path) -> None:
    (run / "calibration.json").write_text(content)
    with pytest.raises(ValueError, match=r"calibration\.json is damaged"):
        read_calibration(run)


def test_a_model_without_exits_cannot_be_calibrated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = trained(tmp_path / "run", node_problem(), monkeypatch, "sasgnn")
    with pytest.raises(ValueError, match="model with exits, such as EEGNN, got SASGNN"):
        calibrate_run(run)


def test_a_folder_without_a_run_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="holds no run"):
        calibrate_run(tmp_path)
