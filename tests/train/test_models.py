from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch_geometric.data import Data

from eegnn import EEGNN, SASGNN
from eegnn.nn.model import GraphModel
from eegnn.train.models import NAMES, build_model
from eegnn.zoo.gcn import GCN
from tests.train.problems import (
    graph_problem,
    node_problem,
    regression_problem,
    ring,
    small_config,
)


@pytest.mark.parametrize(("name", "kind"), [("eegnn", EEGNN), ("sasgnn", SASGNN), ("gcn", GCN)])
def test_a_model_is_built_by_name(name: str, kind: type[GraphModel]) -> None:
    model = build_model(small_config(model=name, hidden_channels=6, num_layers=3), node_problem())
    assert type(model) is kind
    assert (model.hidden_channels, model.num_layers) == (6, 3)


@pytest.mark.parametrize("name", NAMES)
def test_sizes_and_level_come_from_the_problem(name: str) -> None:
    config = small_config(model=name)
    for problem in (node_problem(), graph_problem(), regression_problem()):
        model = build_model(config, problem)
        found = (model.in_channels, model.out_channels, model.level)
        assert found == (problem.in_channels, problem.out_channels, problem.level)


def test_a_problem_without_features_gives_a_model_without_inputs() -> None:
    problem = node_problem()
    graph = Data(edge_index=ring(40), y=problem.graphs[0].y, num_nodes=40)
    assert build_model(small_config(), replace(problem, graphs=[graph])).in_channels == 0


@pytest.mark.parametrize(
    ("name", "edge_dim"),
    [("eegnn", 2), ("sasgnn", 2), ("gine", 2), ("gcn", None), ("ee-gcn", None)],
)
def test_only_models_that_take_edge_features_are_told_of_them(
    name: str, edge_dim: int | None
) -> None:
    model = build_model(small_config(model=name), node_problem(edge_dim=2))
    assert model.edge_dim == edge_dim
    assert build_model(small_config(model=name), node_problem()).edge_dim is None


def test_options_reach_the_constructor() -> None:
    options = {"dropout": 0.25, "confidence": "mlp", "nu0": 0.5}
    model = build_model(small_config(options=options), node_problem())
    assert {key: model.config[key] for key in options} == options


def test_an_unknown_model_is_named_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"model must be one of eegnn, sasgnn, gcn.*'transformer'"):
        build_model(small_config(model="transformer"), node_problem())


def test_an_unknown_option_is_named_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"^options\.nu1 is no option of eegnn") as caught:
        build_model(small_config(options={"nu1": 0}), node_problem())
    assert "nu0" in str(caught.value)
    assert "in_channels" not in str(caught.value)


def test_an_option_of_another_model_is_unknown() -> None:
    with pytest.raises(ValueError, match=r"options\.nu0 is no option of gcn"):
        build_model(small_config(model="gcn", options={"nu0": 0.5}), node_problem())


def test_a_bad_value_of_an_option_is_named() -> None:
    with pytest.raises(ValueError, match="dropout must be in"):
        build_model(small_config(options={"dropout": 1.5}), node_problem())


def test_the_same_seed_gives_the_same_weights() -> None:
    models = []
    for seed in (0, 0, 1):
        torch.manual_seed(seed)
        models.append(build_model(small_config(), node_problem()))
    first, again, other = (torch.cat([p.view(-1) for p in m.parameters()]) for m in models)
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


@pytest.mark.parametrize(
    "options",
    [
        {"in_channels": 3},
        {"out_channels": 7},
        {"level": "graph"},
        {"task": "regression"},
        {"edge_dim": 3},
        {"hidden_channels": 16},
        {"num_layers": 2},
    ],
)
def test_what_the_problem_or_a_setting_decides_is_no_option(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"options.{next(iter(options))} is no option"):
        build_model(small_config(options=options), node_problem())
