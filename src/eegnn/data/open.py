"""Open any data set by one string: a registered name, a generated set, or a file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import get_args

from eegnn.data.distances import distances
from eegnn.data.download import data_root
from eegnn.data.echo import EchoTask, echo
from eegnn.data.files import FORMATS, read_problem
from eegnn.data.powerlaw import powerlaw_problem
from eegnn.data.problem import Problem
from eegnn.data.registry import DATASETS, open_dataset
from eegnn.data.transfer import TransferGraph, transfer

#: How the names of generated sets begin, but for ``powerlaw``.
GENERATED = ("echo-", "transfer-", "distances-")


def open_problem(dataset: str, split: int = 0, root: Path | None = None) -> Problem:
    """Open a data set.

    Args:
        dataset: a registered name (`eegnn datasets` lists them); ``echo-sssp``, ``echo-ecc`` or
            ``echo-diam``, ``transfer-line-10`` and its like, ``distances-6``, and ``powerlaw``; or
            a path, as
            :func:`~eegnn.data.files.read_problem` takes. Generated sets, and registered ones of
            many graphs, may have a share of their size: ``echo-sssp@0.1``, ``peptides-func@0.1``.
        split: which split; for generated sets, the seed.
        root: the data folder; ``None`` for the default.
    """
    if is_path(dataset):
        return read_problem(dataset, split)
    name, _, size = dataset.partition("@")
    try:
        share = float(size) if size else 1.0
    except ValueError:
        raise ValueError(f"the size in {dataset!r} must be a number, got {size!r}") from None
    if _is_generated(name):
        return _generate(name, share, split, root)
    problem = open_dataset(name, split, root)
    return problem.subsample(share) if size else problem


def is_path(dataset: str) -> bool:
    """Whether a string is the path of one's own data, and not the name of a data set."""
    if "/" in dataset or os.sep in dataset or Path(dataset).suffix.lower() in FORMATS:
        return True
    name = dataset.partition("@")[0]
    return name not in DATASETS and not _is_generated(name) and Path(dataset).exists()


def as_path(path: Path) -> str:
    """Write a path so that it is never taken for the name of a data set."""
    return str(path) if path.suffix.lower() in FORMATS else os.path.join(os.curdir, path)


def _is_generated(name: str) -> bool:
    return name == "powerlaw" or name.startswith(GENERATED)


def _generate(name: str, share: float, seed: int, root: Path | None) -> Problem:
    family, _, rest = name.partition("-")
    kind, _, distance = rest.rpartition("-")
    if name == "powerlaw":
        return powerlaw_problem(share, seed)
    if family == "echo" and rest in get_args(EchoTask):
        return echo(rest, share, seed, data_root(root))  # type: ignore[arg-type]
    if family == "transfer" and kind in get_args(TransferGraph) and distance.isdigit():
        return transfer(kind, int(distance), share, seed)  # type: ignore[arg-type]
    if family == "distances" and rest.isdigit():
        return distances(int(rest), share, seed)
    raise ValueError(
        f"{name!r} cannot be generated; examples are echo-sssp, echo-ecc@0.1, echo-diam, "
        f"transfer-line-10, transfer-ring-50, transfer-crossed-ring-5, distances-6, powerlaw@0.1"
    )
