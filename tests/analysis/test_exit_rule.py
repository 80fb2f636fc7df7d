from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from eegnn.analysis.exit_rule import (
    Point,
    accuracy_cost_curve,
    point_of,
    replay,
    spread_thresholds,
)
from eegnn.analysis.layers import LayerOutputs, outputs_by_layer
from tests import transcription
from tests.graphs import quick
from tests.nn.exit_examples import SEEDS, L, batch_of_graphs, connected_or_not, features, make
from tests.nn.model_examples import EDGE_INDEX, build
from tests.nn.model_examples import features as node_features

THRESHOLDS = [0.0, 0.05, 0.3, 0.8, 0.95, 1.0]
SPREAD = SEEDS[1:]  # with which units leave at different layers
LIMITS = [None, 1, 4, 9]


def by_hand(log_stay: Tensor, out: Tensor | None = None) -> LayerOutputs:
    """Outputs whose own rule is the threshold one half; by default they are the layer."""
    layers, units = log_stay.shape
    if out is None:
        out = torch.arange(1.0, layers + 1).view(-1, 1, 1).expand(-1, units, 1)
    own = first_at_or_below(log_stay, 0.5)
    own_out = torch.stack([out[layer - 1, u] for u, layer in enumerate(own)])
    return LayerOutputs(out, log_stay, own_out, torch.tensor(own))


def first_at_or_below(log_stay: Tensor, survival: float) -> list[int]:
    """The first layer after which a unit goes on with at most this probability, or the last."""
    layers, units = log_stay.shape
    found = []
    for u in range(units):
        layer = 1
        while layer < layers and not math.exp(log_stay[layer - 1, u]) <= survival:
            layer += 1
        found.append(layer)
    return found


def random_survival(seed: int, layers: int = 20, units: int = 50) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    hazard = torch.rand(layers, units, generator=generator, dtype=torch.float64) ** 3
    return torch.log1p(-0.5 * hazard).cumsum(dim=0)


@pytest.mark.parametrize("level", ["node", "graph"])
@pytest.mark.parametrize("seed", SPREAD)
def test_replayed_exits_are_those_of_predict(seed: int, level: Any) -> None:
    graph = batch_of_graphs(seed)
    model = make(seed, level=level)
    x = features(seed, graph.num_nodes)
    outputs = outputs_by_layer(model, x, graph.edge_index(), None, graph.batch())
    for threshold in (None, *THRESHOLDS):
        for limit in LIMITS:
            knobs: dict[str, Any] = {"exit_threshold": threshold, "max_layers": limit}
            out, layer = replay(outputs, **knobs)
            truth, exits = model.predict(x, graph.edge_index(), batch=graph.batch(), **knobs)
            assert layer.tolist() == exits.layer.tolist()
            torch.testing.assert_close(out, truth, rtol=0, atol=1e-12)


@pytest.mark.parametrize("threshold", THRESHOLDS)
def test_replayed_exits_are_those_of_algorithm_1(threshold: float) -> None:
    graph, model = connected_or_not(4), make(4)
    x = features(4, graph.num_nodes)
    out, layer = replay(outputs_by_layer(model, x, graph.edge_index()), threshold)
    truth = transcription.run(
        transcription.read(model),
        graph,
        x.numpy(),
        num_layers=L,
        exit_threshold=threshold,
    )
    assert layer.tolist() == truth.layer
    np.testing.assert_allclose(out, truth.output, rtol=0, atol=1e-10)


def test_in_single_precision_nodes_are_replayed_to_the_bit() -> None:
    model = build("EEGNN")
    outputs = outputs_by_layer(model, node_features(), EDGE_INDEX)
    for threshold in spread_thresholds(outputs):
        out, layer = replay(outputs, threshold)
        truth, exits = model.predict(node_features(), EDGE_INDEX, exit_threshold=threshold)
        assert torch.equal(layer, exits.layer)
        assert torch.equal(out, truth)


@quick
@given(st.integers(0, 10**6), st.floats(0, 1))
def test_a_unit_leaves_once_it_has_left_with_the_probability(seed: int, threshold: float) -> None:
    log_stay = random_survival(seed, layers=6, units=9)
    out, layer = replay(by_hand(log_stay), threshold)
    assert layer.tolist() == first_at_or_below(log_stay, 1 - threshold)
    assert out.view(-1).tolist() == layer.tolist()


def test_who_has_no_survival_probability_stays() -> None:
    log_stay = torch.tensor([[-0.1, -0.1], [math.nan, -9.0], [math.nan, -9.0]])
    outputs = by_hand(log_stay)
    assert replay(outputs, 0.9)[1].tolist() == [3, 2]
    assert all(math.isfinite(t) for t in spread_thresholds(outputs))


@quick
@given(st.integers(0, 10**6), st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_a_higher_threshold_never_costs_less(seed: int, thresholds: list[float]) -> None:
    outputs = by_hand(random_survival(seed))
    y = torch.zeros(outputs.num_units, 1)
    curve = accuracy_cost_curve("mae", thresholds, partial(point_of, outputs, y, "mae", 1.0))
    assert [point.threshold for point in curve.points] == sorted(thresholds)
    costs = [point.cost for point in curve.points]
    assert costs == sorted(costs)


@quick
@given(st.integers(0, 10**6), st.sampled_from([1, 7, 20, 100]))
def test_spread_thresholds_spread_the_costs_evenly(seed: int, steps: int) -> None:
    outputs = by_hand(random_survival(seed))
    y = torch.zeros(outputs.num_units, 1)
    thresholds = spread_thresholds(outputs, steps)
    assert {0.0, 1.0} <= set(thresholds)
    costs = [point_of(outputs, y, "mae", 1.0, threshold).cost for threshold in thresholds]
    assert (costs[0], costs[-1]) == (1 / 20, 1.0)
    assert np.diff(costs).max() <= 1 / steps + 1 / (20 * 50) + 1e-12


@pytest.mark.parametrize(
    "log_stay", [torch.zeros(1, 1), torch.zeros(4, 3), -1e6 * torch.ones(2, 2)]
)
def test_thresholds_can_be_chosen_where_survival_says_nothing(log_stay: Tensor) -> None:
    thresholds = spread_thresholds(by_hand(log_stay))
    assert {0.0, 1.0} <= set(thresholds)
    assert all(0 <= t <= 1 for t in thresholds)


def test_cost_and_score_of_a_rule() -> None:
    # Of four layers, unit 0 leaves at 2, unit 1 at the last, unit 2 at 1; the output is the layer.
    log_stay = torch.tensor(
        [[0.9, 0.9, 0.2], [0.2, 0.9, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.1]]
    ).log()
    outputs = by_hand(log_stay)
    y = torch.tensor([[6.0], [9.0], [5.0]])
    index = torch.tensor([2, 0])
    measure = partial(point_of, outputs.select(index), y[index], "mae", 10.0)
    curve = accuracy_cost_curve("mae", [1.0, 0.5, 0.0], measure)
    assert curve.points == (
        Point(0.0, None, 0.25, 10 * (4 + 5) / 2),
        Point(0.5, None, (1 + 2) / 2 / 4, 10 * (4 + 4) / 2),
        Point(1.0, None, 1.0, 10 * (1 + 2) / 2),
    )
    assert curve.own == Point(None, None, 0.375, 40.0)
    assert curve.full == Point(1.0, None, 1.0, 15.0)
    limited = point_of(outputs, y, "mae", 1.0, 0.5, 3)
    assert limited.cost == pytest.approx((2 + 3 + 1) / 3 / 4)
    assert limited.score == pytest.approx((4 + 6 + 4) / 3)
    assert limited.knobs == {"exit_threshold": 0.5, "max_layers": 3}


def test_what_is_not_finite_has_no_score() -> None:
    outputs = by_hand(torch.zeros(2, 1), torch.tensor([[[0.0]], [[math.inf]]]))
    y = torch.zeros(1, 1)
    assert point_of(outputs, y, "mae", 1.0, 0.0).score == 0
    assert math.isnan(point_of(outputs, y, "mae", 1.0, 1.0).score)


def test_what_cannot_be_replayed_is_refused() -> None:
    fixed = outputs_by_layer(build("SASGNN"), node_features(), EDGE_INDEX)
    with pytest.raises(ValueError, match="model with exits"):
        replay(fixed, 0.5)
    with pytest.raises(ValueError, match="model with exits"):
        spread_thresholds(fixed)
    assert replay(fixed, None, 2)[1].tolist() == [2] * 7
    with pytest.raises(ValueError, match="max_layers must be at least 1"):
        replay(fixed, None, 0)
    with pytest.raises(ValueError, match=r"exit_threshold must be in \[0, 1\]"):
        replay(by_hand(torch.zeros(2, 3)), 1.5)
    frozen = outputs_by_layer(build("EEGNN freeze"), node_features(), EDGE_INDEX)
    for knobs in ({"exit_threshold": 0.5}, {"max_layers": 2}):
        with pytest.raises(ValueError, match="after_exit='evolve'"):
            replay(frozen, **knobs)
    assert torch.equal(replay(frozen)[0], frozen.own_out)
