"""A part of a data set of many graphs, to try something out in little time."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from eegnn import _check
from eegnn.data.problem import Problem


def take_share(problem: Problem, share: float) -> Problem:
    """Keep a share of the graphs of each part, at least one, evenly spaced and always the same.

    Args:
        problem: one of many graphs; it stays as it is.
        share: between 0 and 1.
    """
    _check.number("share", share, 0.0, 1.0)
    if not problem.inductive:
        raise ValueError(f"{problem.name} is one graph: a share can only be taken of many")
    parts = [_spaced(part, share) for part in (problem.train, problem.val, problem.test)]
    train, val, test = torch.arange(sum(map(len, parts))).split([len(part) for part in parts])
    return replace(
        problem,
        graphs=[problem.graphs[index] for index in torch.cat(parts).tolist()],
        train=train,
        val=val,
        test=test,
        notes={**problem.notes, "share": f"{share:g} of the graphs of each part, evenly spaced"},
    )


def _spaced(part: Tensor, share: float) -> Tensor:
    count = max(1, round(share * len(part)))
    return part[torch.arange(count) * len(part) // count]
