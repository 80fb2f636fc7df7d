"""The names and modules of the experiments; one is imported when it is used."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from eegnn.data.open import GENERATED
from eegnn.data.registry import find as find_dataset
from eegnn.studies.configs import whole_dataset
from eegnn.studies.experiment import Experiment
from eegnn.train.config import Config

_NAMES = (
    "heterophilic", "heterophilic-extended", "echo", "homophilic", "tu", "lrgb", "ogb",
    "exits-heterophilic", "exits-learn", "exits-echo", "oracle", "activations", "classic-exits",
    "depth-width", "robustness", "runtime", "parameters", "space", "statistics", "depth-webkb",
    "depth", "graph-transfer", "dirichlet", "sensitivity", "budget", "tradeoff", "exits-time",
    "exits-peptides", "backbones", "links",
)  # fmt: skip
#: Names on the command line, and the modules that hold the experiments. A module has an
#: ``ABOUT``, a function ``cells`` and, where there are statements to check, ``findings``.
EXPERIMENTS = {name: f"eegnn.experiments.{name.replace('-', '_')}" for name in _NAMES}


def find(name: str) -> Experiment:
    """Import an experiment; an unknown name is an error with the names that are close."""
    if name not in EXPERIMENTS:
        near = difflib.get_close_matches(name, EXPERIMENTS, n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(near)}?" if near else ", ".join(EXPERIMENTS)
        raise ValueError(f"there is no experiment called {name!r}: {hint}")
    module = import_module(EXPERIMENTS[name])
    findings = getattr(module, "findings", lambda table: ())
    return Experiment(**vars(module.ABOUT), name=name, cells=module.cells, findings=findings)


def by_cost(quick: bool = False) -> list[Experiment]:
    """All experiments, the cheapest first."""
    return sorted(map(find, EXPERIMENTS), key=lambda experiment: experiment.minutes[quick])


def missing_data(configs: Sequence[Config], root: Path | None = None) -> list[str]:
    """Return the data sets of runs that are not on this machine."""
    names = dict.fromkeys(config.dataset for config in configs)
    return [
        name
        for name in names
        if not name.startswith(GENERATED)
        and find_dataset(whole_dataset(name)).place(root) == "needs network"
    ]
