"""Which experiments there are; one is imported when it is asked for."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from eegnn.data.registry import find as find_dataset
from eegnn.studies.study import Experiment
from eegnn.train.config import Config

#: Names on the command line, and the modules that hold the experiments.
EXPERIMENTS = {
    "parameters": "eegnn.experiments.parameters",
    "space": "eegnn.experiments.space",
    "depth-webkb": "eegnn.experiments.depth_webkb",
    "depth": "eegnn.experiments.depth",
    "depth-width": "eegnn.experiments.depth_width",
    "graph-transfer": "eegnn.experiments.graph_transfer",
    "dirichlet": "eegnn.experiments.dirichlet",
    "sensitivity": "eegnn.experiments.sensitivity",
    "heterophilic": "eegnn.experiments.heterophilic",
    "heterophilic-extended": "eegnn.experiments.heterophilic_extended",
    "exits-heterophilic": "eegnn.experiments.exits_heterophilic",
    "exits-learn": "eegnn.experiments.exits_learn",
    "exits-time": "eegnn.experiments.exits_time",
    "oracle": "eegnn.experiments.oracle",
    "activations": "eegnn.experiments.activations",
    "classic-exits": "eegnn.experiments.classic_exits",
    "budget": "eegnn.experiments.budget",
    "runtime": "eegnn.experiments.runtime",
    "tradeoff": "eegnn.experiments.tradeoff",
    "echo": "eegnn.experiments.echo",
    "exits-echo": "eegnn.experiments.exits_echo",
    "homophilic": "eegnn.experiments.homophilic",
    "tu": "eegnn.experiments.tu",
    "lrgb": "eegnn.experiments.lrgb",
    "exits-peptides": "eegnn.experiments.exits_peptides",
    "robustness": "eegnn.experiments.robustness",
    "ogb": "eegnn.experiments.ogb",
}


def find(name: str) -> Experiment:
    """Import an experiment, or say which names are close."""
    if name not in EXPERIMENTS:
        near = difflib.get_close_matches(name, EXPERIMENTS, n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(near)}?" if near else ", ".join(EXPERIMENTS)
        raise ValueError(f"there is no experiment called {name!r}: {hint}")
    return import_module(EXPERIMENTS[name]).EXPERIMENT


def by_cost(quick: bool = False) -> list[Experiment]:
    """All experiments, the cheapest first."""
    return sorted(map(find, EXPERIMENTS), key=lambda experiment: experiment.minutes[quick])


def missing_data(configs: Sequence[Config], root: Path | None = None) -> list[str]:
    """Return the data sets of runs that are not on this machine."""
    names = dict.fromkeys(config.dataset for config in configs)
    return [
        name
        for name in names
        if not name.startswith(("echo-", "transfer-"))  # these are generated
        and find_dataset(name.partition("@")[0]).place(root) == "needs network"
    ]
