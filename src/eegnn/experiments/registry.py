"""Which experiments there are; one is imported when it is asked for."""

from __future__ import annotations

import difflib
from importlib import import_module
from pathlib import Path

from eegnn.data.registry import find as find_dataset
from eegnn.experiments.study import Experiment, Plan

#: Names on the command line, and the modules that hold the experiments.
EXPERIMENTS = {
    "depth-webkb": "eegnn.experiments.depth_webkb",
    "graph-transfer": "eegnn.experiments.graph_transfer",
    "exits-echo": "eegnn.experiments.exits_echo",
    "parameters": "eegnn.experiments.parameters",
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


def missing_data(experiment: Experiment, plan: Plan, root: Path | None = None) -> list[str]:
    """Return the data sets of an experiment that are not on this machine."""
    names = dict.fromkeys(config.dataset for config in experiment.configs(plan))
    return [
        name
        for name in names
        if not name.startswith(("echo-", "transfer-"))  # these are generated
        and find_dataset(name).place(root) == "needs network"
    ]
