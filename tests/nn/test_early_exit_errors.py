from __future__ import annotations

from typing import Any

import pytest
from torch_geometric.nn import GCNConv

from eegnn import Adjacency, EarlyExit, SASConv
from tests.nn.exit_examples import HIDDEN, Config, connected_or_not, features, heads, make


def loop_over_sas(**options: Any) -> EarlyExit:
    return EarlyExit(SASConv(HIDDEN).double(), *heads(0), 4, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"level": "graph", "step_size": "mean"}, "step_size='mean' needs level='node'"),
        ({"step_size": "median"}, "step_size must be one of"),
        ({"step_size": -0.5}, "step_size must be at least 0"),
        ({"level": "pair"}, "level must be one of"),
        ({"pool": "median"}, "pool must be one of"),
        ({"after_exit": "vanish"}, "after_exit must be one of"),
    ],
)
def test_wrong_options_are_refused(options: Config, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        loop_over_sas(**options)


@pytest.mark.parametrize("count", [0, 1, 3, 5])
def test_a_list_of_steps_must_have_one_for_each_layer(count: int) -> None:
    with pytest.raises(ValueError, match=f"num_layers=4, got {count}"):
        EarlyExit([SASConv(HIDDEN) for _ in range(count)], *heads(0), 4)


def test_a_step_must_be_callable() -> None:
    with pytest.raises(TypeError, match="step must be callable"):
        EarlyExit(3, *heads(0), 4)  # type: ignore[arg-type]


@pytest.mark.parametrize("num_layers", [0, -1])
def test_the_budget_must_be_positive(num_layers: int) -> None:
    with pytest.raises(ValueError, match="num_layers must be at least 1"):
        EarlyExit(SASConv(HIDDEN), *heads(0), num_layers)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"exit_threshold": -0.1}, r"exit_threshold must be in \[0, 1\]"),
        ({"exit_threshold": 1.1}, r"exit_threshold must be in \[0, 1\]"),
        ({"exit_threshold": float("nan")}, r"exit_threshold must be in \[0, 1\]"),
        ({"max_layers": 0}, "max_layers must be at least 1"),
    ],
)
def test_wrong_questions_are_refused(options: Config, message: str) -> None:
    graph, model = connected_or_not(0), make(0)
    with pytest.raises(ValueError, match=message):
        model.predict(features(0, 11), graph.edge_index(), **options)
    assert model.training


def test_exit_threshold_is_for_evaluation() -> None:
    graph, model = connected_or_not(0), make(0)
    adj = Adjacency.from_edge_index(graph.edge_index(), 11)
    with pytest.raises(ValueError, match=r"exit_threshold is for evaluation"):
        model.evolve(features(0, 11, HIDDEN), adj, exit_threshold=0.5)


def test_a_step_without_edge_features_refuses_them() -> None:
    graph = connected_or_not(0)
    adj = Adjacency.from_edge_index(graph.edge_index(), 11)
    loop = EarlyExit(GCNConv(HIDDEN, HIDDEN).double(), *heads(0), 4)
    with pytest.raises(ValueError, match="edge_attr was given, but GCNConv does not take it"):
        loop(features(0, 11, HIDDEN), adj, features(0, adj.num_edges, 2))
