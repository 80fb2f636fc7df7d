"""From the name of a model to the model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eegnn._check import shown
from eegnn.data.problem import Problem
from eegnn.io import MODELS, num_weights
from eegnn.nn.model import GraphModel
from eegnn.train.config import Config
from eegnn.zoo.registry import ENTRIES

#: Names on the command line, and the classes they stand for.
NAMES = {name: entry.kind for name, entry in ENTRIES.items()}
#: Arguments of a model that the data or other settings decide.
SETTLED = {"in_channels", "hidden_channels", "out_channels", "num_layers", "level", "edge_dim"}

#: Of a model that is trained; they would take 4 GiB, and an optimiser thrice as much.
MAX_WEIGHTS = 2**30


def all_options(model: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return all options of a model: those given, and the defaults of the others."""
    defaults = MODELS[NAMES[model]].defaults() if model in NAMES else {}
    return {name: value for name, value in defaults.items() if name not in SETTLED} | dict(options)


def check_options(config: Config) -> None:
    """Refuse a model that there is not, and options that it does not have."""
    if config.model not in NAMES:
        raise ValueError(f"model must be one of {', '.join(NAMES)}, got {shown(config.model)}")
    settled = SETTLED | ENTRIES[config.model].options.keys()
    known = MODELS[NAMES[config.model]].defaults().keys() - settled
    if unknown := sorted(config.options.keys() - known):
        raise ValueError(
            f"options.{unknown[0][:80]} is no option of {config.model}; known are "
            f"{', '.join(sorted(known))}"
        )


def build_model(config: Config, problem: Problem) -> GraphModel:
    """Build the model that a configuration asks for, with the sizes of the problem."""
    check_options(config)
    model = MODELS[NAMES[config.model]]
    settled: dict[str, Any] = {
        "in_channels": problem.in_channels,
        "hidden_channels": config.hidden_channels,
        "out_channels": problem.out_channels,
        "num_layers": config.num_layers,
        "level": problem.level,
        "edge_dim": problem.edge_dim if model.uses_edges else None,
        **ENTRIES[config.model].options,
    }
    usual = {"pool": "hadamard"} if problem.level == "edge" else {}
    arguments = {**settled, **usual, **config.options}
    count = num_weights(model, arguments)
    if count > MAX_WEIGHTS:
        raise ValueError(
            f"{config.model} would have {count:,} weights with hidden_channels="
            f"{config.hidden_channels}, at most {MAX_WEIGHTS:,} are allowed"
        )
    return model(**arguments)
