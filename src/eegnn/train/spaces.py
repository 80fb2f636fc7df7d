"""The search spaces of the paper (Appendix, Hyperparameters)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from optuna import Trial

Suggest = Callable[["Trial", str], Any]
#: Settings as in a recipe, by name, ``options.NAME`` for arguments of the model. Each is a fixed
#: value, or a function that draws one.
Space = Mapping[str, Any]


def _float(low: float, high: float, log: bool = False) -> Suggest:
    return lambda trial, name: trial.suggest_float(name, low, high, log=log)


def _int(low: int, high: int, step: int = 1) -> Suggest:
    return lambda trial, name: trial.suggest_int(name, low, high, step=step)


def _choice(*values: Any) -> Suggest:
    return lambda trial, name: trial.suggest_categorical(name, list(values))


#: What Co-GNN's search varies, which the paper takes over for all but ECHO.
_BASE: Space = {
    "lr": _float(1e-3, 1e-2, log=True),
    "hidden_channels": _choice(32, 64, 128),
}
_USUAL: Space = {**_BASE, "options.dropout": _choice(0.0, 0.2, 0.5)}
_USUAL_SASGNN: Space = {
    **_USUAL,
    "num_layers": _int(5, 20, step=5),
    "options.step_size": _choice(0.1, 0.5, 1.0),
}
_USUAL_EEGNN: Space = {
    **_USUAL,
    "num_layers": 21,  # the paper's L = 20 counts from 0
    "options.head_layers": _int(1, 3),
    "options.head_channels": _choice(4, 8, 16, 32, 64),
    "options.nu0": _choice(0.0, 0.1),
}
_USUAL_COGNN: Space = {
    **_USUAL,
    "num_layers": _int(5, 12),
    "options.action_layers": _int(1, 3),
    "options.action_channels": _choice(4, 8, 16, 32),
    "options.tau0": _choice(0.1, 0.5),
    "options.skip": _choice(False, True),
    "options.layer_norm": _choice(False, True),
}
#: What the reassessment of classic GNNs varies; dropout is within their layers.
_CLASSIC: Space = {
    **_BASE,
    "options.conv_dropout": _choice(0.0, 0.2, 0.5),
    "num_layers": _int(2, 15),
    "options.residual": _choice(False, True),
    "options.conv_norm": _choice(None, "layer", "batch"),
}

_ECHO: Space = {
    "lr": _float(1e-5, 1e-2, log=True),
    "weight_decay": _float(1e-8, 1e-3, log=True),
    "hidden_channels": _int(32, 256),
    "num_layers": _int(1, 40),
}
_ECHO_SASGNN: Space = {**_ECHO, "options.step_size": _float(0.01, 1.0)}
_ECHO_EEGNN: Space = {
    **_ECHO,
    "num_layers": 40,
    "options.confidence": "sas",
    "options.nu0": 1.0,
    "options.head_layers": _int(1, 40),
    "options.head_channels": _int(32, 128),
}
_ECHO_APGCN: Space = {
    **_ECHO,
    "num_layers": 40,
    "options.decoder_layers": 4,  # L_enc = 5, with the encoder
    # The paper's μ weighs steps, from 1e-4 to 1e-2; here the share of the budget of 40 is weighed.
    "cost_weight": _float(40e-4, 40e-2, log=True),
}

#: By family of data sets and model. GRAFF is searched as SAS-GNN is.
SPACES: dict[str, dict[str, Space]] = {
    "echo": {
        "sasgnn": _ECHO_SASGNN,
        "eegnn": _ECHO_EEGNN,
        "graff": _ECHO_SASGNN,
        "apgcn": _ECHO_APGCN,
        **dict.fromkeys(("gcn", "gcnii", "gin", "adgn", "swan", "graphcon"), _ECHO),
    },
    "usual": {
        "sasgnn": _USUAL_SASGNN,
        "eegnn": _USUAL_EEGNN,
        "gcn": {**_USUAL, "num_layers": _int(2, 10)},
        **dict.fromkeys(("graff", "adgn", "swan"), _USUAL_SASGNN),
        "cognn": _USUAL_COGNN,
        **dict.fromkeys(("sage", "gat", "gin", "gine", "gatedgcn", "gt"), _CLASSIC),
    },
}


def suggest_settings(trial: Trial, dataset: str, model: str) -> dict[str, Any]:
    """Draw settings from the search space for a data set and a model."""
    spaces = SPACES["echo" if dataset.startswith("echo-") else "usual"]
    if model not in spaces:
        raise ValueError(f"there is no search space for {model!r}; known are {', '.join(spaces)}")
    settings: dict[str, Any] = {"options": {}}
    for key, value in spaces[model].items():
        name = key.removeprefix("options.")
        target = settings if name == key else settings["options"]
        target[name] = value(trial, name) if callable(value) else value
    return settings
