"""The search spaces of the paper (Appendix, Hyperparameters)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from optuna import Trial

Space = Callable[["Trial"], dict[str, Any]]


def _usual(trial: Trial) -> dict[str, Any]:
    """What Co-GNN's search varies, which the paper takes over for all but ECHO."""
    return {
        "lr": trial.suggest_float("lr", 1e-3, 1e-2, log=True),
        "hidden_channels": trial.suggest_categorical("hidden_channels", [32, 64, 128]),
        "options": {"dropout": trial.suggest_categorical("dropout", [0.0, 0.2, 0.5])},
    }


def _usual_sasgnn(trial: Trial) -> dict[str, Any]:
    settings = _usual(trial)
    settings["num_layers"] = trial.suggest_int("num_layers", 5, 20, step=5)
    settings["options"]["step_size"] = trial.suggest_categorical("step_size", [0.1, 0.5, 1.0])
    return settings


def _usual_eegnn(trial: Trial) -> dict[str, Any]:
    settings = _usual(trial)
    settings["num_layers"] = 21  # the paper's L = 20 counts from 0
    settings["options"] |= {
        "head_layers": trial.suggest_int("head_layers", 1, 3),
        "head_channels": trial.suggest_categorical("head_channels", [4, 8, 16, 32, 64]),
        "nu0": trial.suggest_categorical("nu0", [0.0, 0.1]),
    }
    return settings


def _echo(trial: Trial) -> dict[str, Any]:
    return {
        "lr": trial.suggest_float("lr", 1e-5, 1e-2, log=True),
        "weight_decay": trial.suggest_float("weight_decay", 1e-8, 1e-3, log=True),
        "hidden_channels": trial.suggest_int("hidden_channels", 32, 256),
        "options": {},
    }


def _echo_sasgnn(trial: Trial) -> dict[str, Any]:
    settings = _echo(trial)
    settings["num_layers"] = trial.suggest_int("num_layers", 1, 40)
    settings["options"]["step_size"] = trial.suggest_float("step_size", 0.01, 1.0)
    return settings


def _echo_eegnn(trial: Trial) -> dict[str, Any]:
    settings = _echo(trial)
    settings["num_layers"] = 40
    settings["options"] |= {
        "confidence": "sas",
        "nu0": 1.0,
        "head_layers": trial.suggest_int("head_layers", 1, 40),
        "head_channels": trial.suggest_int("head_channels", 32, 128),
    }
    return settings


def _echo_apgcn(trial: Trial) -> dict[str, Any]:
    settings = _echo(trial)
    settings["num_layers"] = 40
    settings["options"]["decoder_layers"] = 4  # L_enc = 5, with the encoder
    # The paper's μ weighs steps, from 1e-4 to 1e-2; here the share of the budget of 40 is weighed.
    settings["cost_weight"] = trial.suggest_float("cost_weight", 40e-4, 40e-2, log=True)
    return settings


def _usual_cognn(trial: Trial) -> dict[str, Any]:
    settings = _depth(_usual, 5, 12)(trial)
    settings["options"] |= {
        "action_layers": trial.suggest_int("action_layers", 1, 3),
        "action_channels": trial.suggest_categorical("action_channels", [4, 8, 16, 32]),
        "tau0": trial.suggest_categorical("tau0", [0.1, 0.5]),
        "skip": trial.suggest_categorical("skip", [False, True]),
        "layer_norm": trial.suggest_categorical("layer_norm", [False, True]),
    }
    return settings


def _depth(base: Space, low: int, high: int) -> Space:
    def space(trial: Trial) -> dict[str, Any]:
        return {**base(trial), "num_layers": trial.suggest_int("num_layers", low, high)}

    return space


def _classic(trial: Trial) -> dict[str, Any]:
    """What the reassessment of classic GNNs varies beside width, depth and dropout."""
    settings = _depth(_usual, 2, 15)(trial)
    settings["options"] |= {
        "residual": trial.suggest_categorical("residual", [False, True]),
        "conv_norm": trial.suggest_categorical("conv_norm", [None, "layer", "batch"]),
    }
    settings["options"]["conv_dropout"] = settings["options"].pop("dropout")
    return settings


_CLASSIC = ("sage", "gat", "gin", "gine", "gatedgcn", "gt")
_DEEP = ("adgn", "swan", "graphcon")

#: By family of data sets and model. GRAFF is searched as SAS-GNN is.
SPACES: dict[str, dict[str, Space]] = {
    "echo": {
        "sasgnn": _echo_sasgnn,
        "eegnn": _echo_eegnn,
        "graff": _echo_sasgnn,
        "apgcn": _echo_apgcn,
        **dict.fromkeys(("gcn", "gcnii", "gin", *_DEEP), _depth(_echo, 1, 40)),
    },
    "usual": {
        "sasgnn": _usual_sasgnn,
        "eegnn": _usual_eegnn,
        "gcn": _depth(_usual, 2, 10),
        "graff": _usual_sasgnn,
        "adgn": _usual_sasgnn,
        "swan": _usual_sasgnn,
        "cognn": _usual_cognn,
        **dict.fromkeys(_CLASSIC, _classic),
    },
}


def find_space(dataset: str, model: str) -> Space:
    """Return the search space for a data set and a model."""
    spaces = SPACES["echo" if dataset.startswith("echo-") else "usual"]
    if model not in spaces:
        raise ValueError(f"there is no search space for {model!r}; known are {', '.join(spaces)}")
    return spaces[model]
