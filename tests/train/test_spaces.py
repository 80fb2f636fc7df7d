from __future__ import annotations

import optuna
import pytest

from eegnn.io import MODELS
from eegnn.train.config import make_config
from eegnn.train.models import NAMES
from eegnn.train.spaces import SPACES, suggest_settings

DATASETS = {"echo": "echo-sssp@0.07", "usual": "minesweeper"}
EVERY = [(family, model) for family, spaces in SPACES.items() for model in spaces]


@pytest.mark.parametrize(("family", "model"), EVERY)
def test_a_space_gives_settings_and_options_that_exist(family: str, model: str) -> None:
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    known = MODELS[NAMES[model]].defaults()
    for _ in range(3):
        settings = suggest_settings(study.ask(), DATASETS[family], model)
        config = make_config({"dataset": "x", "model": model}, settings)
        assert config.options.keys() <= known.keys()


def test_what_is_drawn_is_what_is_set() -> None:
    trial = optuna.create_study().ask()
    settings = suggest_settings(trial, "minesweeper", "eegnn")
    assert settings["lr"] == trial.params["lr"]
    assert settings["options"]["nu0"] == trial.params["nu0"]
    assert settings["num_layers"] == 21
    assert "num_layers" not in trial.params


def test_a_model_without_a_space_is_named() -> None:
    with pytest.raises(ValueError, match="no search space for 'drew'"):
        suggest_settings(optuna.create_study().ask(), "texas", "drew")


def test_the_ponder_cost_of_apgcn_is_searched_in_the_papers_range() -> None:
    """The paper's μ of 1e-4 … 1e-2 weighs the number of steps, ours its share of the budget."""
    trial = optuna.create_study().ask()
    layers = suggest_settings(trial, "echo-sssp@0.07", "apgcn")["num_layers"]
    drawn = trial.distributions["cost_weight"]
    assert isinstance(drawn, optuna.distributions.FloatDistribution)
    assert (drawn.low / layers, drawn.high / layers) == pytest.approx((1e-4, 1e-2))


def test_classic_models_drop_within_their_layers() -> None:
    """As Luo, Shi and Wu do; the models of the paper drop only outside the dynamics."""
    study = optuna.create_study()
    for model, option in (("gat", "conv_dropout"), ("sasgnn", "dropout")):
        assert option in suggest_settings(study.ask(), "minesweeper", model)["options"]
