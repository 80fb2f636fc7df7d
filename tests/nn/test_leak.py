"""A chance of leaving at every layer, whatever the heads say."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from eegnn import EEGNN
from eegnn.blocks import infer, partition
from eegnn.nn.mixture import exit_log_probabilities, leaky
from tests.graphs import quick
from tests.nn.exit_examples import EXPECTED, SEEDS, Config, L, batch_of_graphs, features, make


@quick
@given(st.floats(-60, 60), st.floats(1e-4, 0.3))
def test_it_multiplies_the_probability_of_staying(score: float, leak: float) -> None:
    found = leaky(torch.tensor([score], dtype=torch.float64), leak).item()
    stay = (1 - leak) / (1 + math.exp(-score))
    assert 1 / (1 + math.exp(-found)) == pytest.approx(stay, rel=1e-12)


@pytest.mark.parametrize("score", [-90.0, -20.0, 0.0, 20.0, 90.0])
def test_it_has_a_gradient_and_a_value_everywhere(score: float) -> None:
    s = torch.tensor([score], requires_grad=True)
    out = leaky(s, 0.01)
    out.sum().backward()
    assert s.grad is not None
    assert math.isfinite(out.item())
    assert math.isfinite(s.grad.item())
    assert s.grad.item() >= 0


def test_none_changes_nothing() -> None:
    score = torch.randn(4)
    assert leaky(score, 0.0) is score


def test_who_would_never_leave_leaves_evenly() -> None:
    score = leaky(torch.full((L, 1), 80.0).double(), 1 - (1 - 0.2) ** (1 / L))
    weight = exit_log_probabilities(score).exp()
    assert weight[-1].item() == pytest.approx(0.8)
    ratio = weight[1:-1] / weight[:-2]
    torch.testing.assert_close(ratio, torch.full_like(ratio, 0.8 ** (1 / L)))


@pytest.mark.parametrize("level", ["node", "graph"])
@pytest.mark.parametrize("seed", SEEDS)
def test_training_skipping_and_the_plain_loop_agree(seed: int, level: str) -> None:
    graph = batch_of_graphs(seed)
    model = make(seed, **{**EXPECTED, "level": level}, leak=0.2)
    given_graph = (features(seed, graph.num_nodes), graph.edge_index())
    trained = model(*given_graph, batch=graph.batch())
    for threshold in (None, 0.05, 0.15, 1.0):
        skipped, exits = model.predict(*given_graph, batch=graph.batch(), exit_threshold=threshold)
        model.loop.watch = lambda states: None  # then nothing is skipped
        plain, plain_exits = model.predict(
            *given_graph, batch=graph.batch(), exit_threshold=threshold
        )
        model.loop.watch = None
        assert torch.equal(exits.layer, plain_exits.layer)
        torch.testing.assert_close(skipped, plain, rtol=0, atol=1e-10)
    torch.testing.assert_close(skipped, trained.detach(), rtol=0, atol=1e-10)
    if level == "node":
        by_blocks, _ = infer(
            model, given_graph[0], partition(graph.edge_index(), graph.num_nodes, 3)
        )
        whole, _ = model.predict(*given_graph)
        torch.testing.assert_close(by_blocks, whole, rtol=0, atol=1e-10)


@pytest.mark.parametrize("threshold", [0.02, 0.05, 0.1, 0.15])
def test_a_low_threshold_shortens_the_way_of_all(threshold: float) -> None:
    graph = batch_of_graphs(1)
    start: Config = {"leak": 0.2, "continue_bias": 1e3, "head_scale": 0.0}
    x = features(1, graph.num_nodes).float()
    last = math.ceil(40 * math.log1p(-threshold) / math.log1p(-0.2) - 1e-6) - 1
    for answer, task in itertools.product(("state", "mixture"), ("regression", "classification")):
        config: Config = {**start, "answer": answer, "task": task}
        model = EEGNN(3, 4, 2, num_layers=40, **config)
        _, exits = model.predict(x, graph.edge_index(), exit_threshold=threshold)
        if task == "regression":
            assert set(exits.layer.tolist()) == {last}
        else:  # who has no doubt does not wait
            assert int(exits.layer.max()) <= last


def test_it_is_checked() -> None:
    with pytest.raises(ValueError, match="leak needs objective"):
        EEGNN(3, 4, 2, objective="sampled", leak=0.1)
    with pytest.raises(ValueError, match="leak"):
        EEGNN(3, 4, 2, leak=0.9)
