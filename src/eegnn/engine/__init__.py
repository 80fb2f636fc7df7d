"""How the exit loop is run: every backend computes what ``nn.exit_loop.run`` computes."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from eegnn._tracing import is_traced
from eegnn.engine.on_demand import run as run_on_demand
from eegnn.engine.pruned import refuses
from eegnn.engine.pruned import run as run_pruned
from eegnn.graph import Adjacency
from eegnn.nn.exit_loop import run
from eegnn.nn.exits import Exits
from eegnn.nn.program import Program

# The C library of Linux gives freed memory back to the system, unless a block as large as this one
# has been freed before: then it keeps up to 64 MB. Without it the matrices of each step are mapped
# anew, which takes an eighth of an epoch of SAS-GNN on Minesweeper.
torch.empty(2**25 - 2**14, dtype=torch.uint8, device="cpu")

Backend = Callable[[Program, Tensor, Adjacency], tuple[Tensor, Exits]]

#: By name; ``exits.backend`` tells which one was taken.
BACKENDS: dict[str, Backend] = {"reference": run, "pruned": run_pruned}
execute_nodes = run_on_demand  #: runs a program for some nodes alone


class Choice(NamedTuple):
    """The name of a backend, and why it is the one."""

    backend: str
    reason: str


def choose(program: Program, h: Tensor) -> Choice:
    """Choose the backend for a program and its initial states; this is the only place that does.

    Args:
        program: what is to be run.
        h: initial states ``[n, m']``.
    """
    if program.training or torch.is_grad_enabled():
        return Choice("reference", "gradients are on: autograd needs every step of every unit")
    if is_traced():
        return Choice("reference", "operators are traced: none may depend on which units have left")
    if program.hooked:
        return Choice("reference", "hooks are registered: modules are called, with every unit")
    if program.noisy:
        return Choice("reference", "noise is drawn for every unit at every step")
    if program.observe is not None and program.exit_threshold != 1:
        return Choice("reference", "all states are observed, also those of units that have left")
    if torch.is_autocast_enabled(h.device.type):
        return Choice("reference", "autocast is on")
    if (reason := refuses(program)) is not None:
        return Choice("reference", reason)
    if program.confidence is None:
        return Choice("pruned", "the model has no exits: all steps are taken in place")
    return Choice("pruned", "states that no prediction depends on any more are not computed")


def execute(program: Program, h: Tensor, adj: Adjacency) -> tuple[Tensor, Exits]:
    """Run a program by the backend that :func:`choose` names; see
    :func:`~eegnn.nn.exit_loop.run`."""
    return BACKENDS[choose(program, h).backend](program, h, adj)
