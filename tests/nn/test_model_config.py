"""Copies of a model, its repr, its config, and drawing its weights anew."""

from __future__ import annotations

import copy
import inspect
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch

from eegnn import EEGNN, SASGNN
from eegnn.nn.model import GraphModel
from eegnn.zoo.gcn import GCN
from tests.nn.model_examples import EDGE_INDEX, KINDS, build, features


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", ["deepcopy", "pickle"])
def test_copies_are_equal_and_independent(kind: str, way: str) -> None:
    model = build(kind).eval()
    x = features()
    expected = model(x, EDGE_INDEX)
    twin = copy.deepcopy(model) if way == "deepcopy" else pickle.loads(pickle.dumps(model))
    assert torch.equal(twin(x, EDGE_INDEX), expected)
    assert twin.config == model.config
    twin.reset_parameters()
    assert not torch.equal(twin(x, EDGE_INDEX), expected)
    assert torch.equal(model(x, EDGE_INDEX), expected)


@pytest.mark.parametrize("model_class", [SASGNN, EEGNN])
def test_repr_is_one_line(model_class: type[GraphModel]) -> None:
    text = repr(model_class(5, 8, 3, 6, level="graph"))
    assert text == f"{model_class.__name__}(5, 8, 3, num_layers=6, level='graph')"


@pytest.mark.parametrize("kind", KINDS)
def test_reset_draws_all_weights_anew_and_is_seeded(kind: str) -> None:
    heads: dict[str, Any] = {} if kind == "SASGNN" else {"head_layers": 2, "continue_bias": None}
    model = build(kind, edge_dim=2, decoder_layers=2, **heads)
    start = {k: p.detach().clone() for k, p in model.named_parameters()}
    torch.manual_seed(5)
    model.reset_parameters()
    first = {k: p.detach().clone() for k, p in model.named_parameters()}
    same = [k for k in start if torch.equal(start[k], first[k])]
    assert same == []
    torch.manual_seed(5)
    model.reset_parameters()
    for name, p in model.named_parameters():
        assert torch.equal(p, first[name])


@pytest.mark.parametrize("model_class", [SASGNN, EEGNN])
def test_config_holds_every_argument_of_the_constructor(model_class: type[GraphModel]) -> None:
    build_one: Callable[..., GraphModel] = model_class
    model = build_one(5, 8, 3, dropout=0.25, pool="max")
    defaults = model_class.defaults()
    signature = inspect.signature(model_class).parameters
    assert {*signature} - {"kwargs"} <= defaults.keys()
    assert model.config.keys() == defaults.keys()
    given_values = {
        "in_channels": 5, "hidden_channels": 8, "out_channels": 3, "dropout": 0.25, "pool": "max"
    }  # fmt: skip
    for name, default in defaults.items():
        assert model.config[name] == given_values.get(name, default)
    assert build_one(**model.config).config == model.config


def test_a_model_without_edge_features_refuses_edge_dim() -> None:
    with pytest.raises(ValueError, match="GCN takes no edge features"):
        GCN(5, 8, 3, edge_dim=2)
