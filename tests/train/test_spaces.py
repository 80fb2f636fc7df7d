from __future__ import annotations

import optuna
import pytest

from eegnn.io import MODELS
from eegnn.train.config import make_config
from eegnn.train.models import NAMES
from eegnn.train.spaces import SPACES, find_space

EVERY = [(family, model) for family, spaces in SPACES.items() for model in spaces]


@pytest.mark.parametrize(("family", "model"), EVERY)
def test_a_space_gives_options_that_the_model_has(family: str, model: str) -> None:
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    known = MODELS[NAMES[model]].defaults()
    for _ in range(3):
        config = make_config({"dataset": "x", "model": model}, SPACES[family][model](study.ask()))
        assert config.options.keys() <= known.keys()


def test_the_ponder_cost_of_apgcn_is_searched_in_the_papers_range() -> None:
    """The paper's μ of 1e-4 … 1e-2 weighs the number of steps, ours its share of the budget."""
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    trial = study.ask()
    settings = find_space("echo-sssp@0.07", "apgcn")(trial)
    drawn = trial.distributions["cost_weight"]
    assert isinstance(drawn, optuna.distributions.FloatDistribution)
    layers = settings["num_layers"]
    assert (drawn.low / layers, drawn.high / layers) == pytest.approx((1e-4, 1e-2))


def test_classic_models_drop_within_their_layers() -> None:
    """As Luo, Shi and Wu do; the models of the paper drop only outside the dynamics."""
    study = optuna.create_study()
    assert "conv_dropout" in find_space("minesweeper", "gat")(study.ask())["options"]
    assert "dropout" in find_space("minesweeper", "sasgnn")(study.ask())["options"]
