"""Bad arguments of the constructors and of `predict`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eegnn import EEGNN, SASGNN
from eegnn.nn.model import GraphModel
from tests.graphs import quick
from tests.nn.model_examples import EDGE_INDEX, KINDS, build, features

SHARED_MISTAKES: list[tuple[str, Any, type[Exception]]] = [
    ("in_channels", -1, ValueError),
    ("in_channels", 5.0, TypeError),
    ("hidden_channels", 0, ValueError),
    ("hidden_channels", -8, ValueError),
    ("hidden_channels", "5", TypeError),
    ("hidden_channels", True, TypeError),
    ("hidden_channels", None, TypeError),
    ("out_channels", 0, ValueError),
    ("out_channels", False, TypeError),
    ("num_layers", 0, ValueError),
    ("num_layers", -3, ValueError),
    ("num_layers", "5", TypeError),
    ("num_layers", True, TypeError),
    ("num_layers", 2.0, TypeError),
    ("level", "pair", ValueError),
    ("level", None, ValueError),
    ("pool", "median", ValueError),
    ("dropout", 2, ValueError),
    ("dropout", -0.1, ValueError),
    ("dropout", math.nan, ValueError),
    ("dropout", "0.5", TypeError),
    ("decoder_layers", 0, ValueError),
    ("weight_scale", -0.1, ValueError),
    ("storage", "dense", ValueError),
    ("edge_dim", 0, ValueError),
    ("edge_dim", 1.5, TypeError),
    ("edge_term", "tanh", ValueError),
    ("edge_term", "relu", ValueError),  # without edge_dim
]
EEGNN_MISTAKES: list[tuple[str, Any, type[Exception]]] = [
    ("after_exit", "stop", ValueError),
    ("confidence", "gat", ValueError),
    ("confidence", "linear", ValueError),
    ("step_size", "fixed", ValueError),
    ("step_size", -0.5, ValueError),
    ("step_size", math.nan, ValueError),
    ("step_size", None, TypeError),
    ("continue_bias", math.inf, ValueError),
    ("nu0", -0.1, ValueError),
    ("nu0", "0.1", TypeError),
    ("head_channels", 0, ValueError),
    ("head_channels", "3", TypeError),
    ("head_layers", 0, ValueError),
    ("recompute", 1, TypeError),
]
SASGNN_MISTAKES: list[tuple[str, Any, type[Exception]]] = [
    ("step_size", -0.5, ValueError),
    ("step_size", math.inf, ValueError),
    ("step_size", "adaptive", TypeError),
    ("solver", "rk5", ValueError),
    ("step_size", 0, ValueError),
    ("shared", "no", TypeError),
    ("conv_dropout", 2, ValueError),
    ("conv_norm", "instance", ValueError),
    ("activation", "gelu", ValueError),
    ("inner_activation", "gelu", ValueError),
]


@pytest.mark.parametrize(
    ("model_class", "name", "value", "error"),
    [
        *((SASGNN, *mistake) for mistake in (*SHARED_MISTAKES, *SASGNN_MISTAKES)),
        *((EEGNN, *mistake) for mistake in (*SHARED_MISTAKES, *EEGNN_MISTAKES)),
    ],
)
def test_a_bad_argument_of_the_constructor_is_named(
    model_class: Callable[..., GraphModel], name: str, value: Any, error: type[Exception]
) -> None:
    arguments = {"in_channels": 5, "hidden_channels": 8, "out_channels": 3, name: value}
    with pytest.raises(error, match=rf"\b{name}\b"):
        model_class(**arguments)


not_an_integer = st.one_of(
    st.floats(), st.text(max_size=3), st.booleans(), st.none(), st.lists(st.integers(), max_size=2)
)


@quick
@given(
    model_class=st.sampled_from([SASGNN, EEGNN]),
    name=st.sampled_from(["in_channels", "hidden_channels", "out_channels", "num_layers"]),
    value=st.one_of(not_an_integer, st.integers(max_value=-1)),
)
def test_sizes_must_be_positive_integers(
    model_class: Callable[..., GraphModel], name: str, value: Any
) -> None:
    arguments = {"in_channels": 5, "hidden_channels": 8, "out_channels": 3, name: value}
    with pytest.raises((TypeError, ValueError), match=f"{name} must be"):
        model_class(**arguments)


@pytest.mark.parametrize(
    ("knob", "value", "error"),
    [
        ("max_layers", 0, ValueError),
        ("max_layers", 2.0, TypeError),
        ("max_layers", "3", TypeError),
        ("max_layers", True, TypeError),
        ("exit_threshold", 1.5, ValueError),
        ("exit_threshold", -0.1, ValueError),
        ("exit_threshold", math.nan, ValueError),
        ("exit_threshold", math.inf, ValueError),
        ("exit_threshold", "0.5", TypeError),
        ("exit_threshold", True, TypeError),
    ],
)
@pytest.mark.parametrize("kind", [k for k in KINDS if k != "SASGNN"])
def test_a_bad_knob_is_named(kind: str, knob: str, value: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=f"{knob} must be"):
        build(kind).predict(features(), EDGE_INDEX, **{knob: value})


@pytest.mark.parametrize(
    ("knob", "value", "error"),
    [
        ("max_layers", 0, ValueError),
        ("max_layers", "3", TypeError),
        ("exit_threshold", 0.5, ValueError),
        ("sample", True, ValueError),
    ],
)
def test_a_model_without_exits_refuses_knobs_for_them(
    knob: str, value: Any, error: type[Exception]
) -> None:
    with pytest.raises(error, match=rf"\b{knob}\b"):
        build("SASGNN").predict(features(), EDGE_INDEX, **{knob: value})
