"""Open any data set by one string: a registered name, a generated set, or a file."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

from eegnn.data.download import data_root
from eegnn.data.echo import EchoTask, echo
from eegnn.data.npz import read_npz
from eegnn.data.powerlaw import powerlaw_problem
from eegnn.data.problem import Problem
from eegnn.data.registry import open_dataset
from eegnn.data.transfer import TransferGraph, transfer


def open_problem(dataset: str, split: int = 0, root: Path | None = None) -> Problem:
    """Open a data set.

    Args:
        dataset: a registered name (`eegnn datasets` lists them); ``echo-sssp``, ``echo-ecc`` or
            ``echo-diam``, ``transfer-line-10`` and its like, and ``powerlaw``; or the path of an
            ``.npz`` file. Generated sets, and registered ones of many graphs, may have a share of
            their size: ``echo-sssp@0.1``, ``peptides-func@0.1``.
        split: which split; for generated sets, the seed.
        root: the data folder; ``None`` for the default.
    """
    if dataset.endswith(".npz"):
        return read_npz(Path(dataset), split)
    name, _, size = dataset.partition("@")
    try:
        share = float(size) if size else 1.0
    except ValueError:
        raise ValueError(f"the size in {dataset!r} must be a number, got {size!r}") from None
    if name == "powerlaw" or name.startswith(("echo-", "transfer-")):
        return _generate(name, share, split, root)
    problem = open_dataset(name, split, root)
    return problem.subsample(share) if size else problem


def _generate(name: str, share: float, seed: int, root: Path | None) -> Problem:
    family, _, rest = name.partition("-")
    kind, _, distance = rest.rpartition("-")
    if name == "powerlaw":
        return powerlaw_problem(share, seed)
    if family == "echo" and rest in get_args(EchoTask):
        return echo(rest, share, seed, data_root(root))  # type: ignore[arg-type]
    if family == "transfer" and kind in get_args(TransferGraph) and distance.isdigit():
        return transfer(kind, int(distance), share, seed)  # type: ignore[arg-type]
    raise ValueError(
        f"{name!r} cannot be generated; examples are echo-sssp, echo-ecc@0.1, echo-diam, "
        f"transfer-line-10, transfer-ring-50, transfer-crossed-ring-5, powerlaw@0.1"
    )
