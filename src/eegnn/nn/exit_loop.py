"""Algorithms 1 and 2: the loop in which every unit decides when to leave.

This is the reference, to be read beside the paper: plain PyTorch, but for the step in training,
which :mod:`eegnn.nn.advance` takes by compiled kernels where there are any. Whatever runs faster is
in :mod:`eegnn.engine` and is tested against it.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from eegnn.graph import Adjacency
from eegnn.nn.advance import advance
from eegnn.nn.exit_rule import wants_to_leave
from eegnn.nn.exits import ExitRecorder, Exits
from eegnn.nn.gumbel import continue_score, logistic_noise
from eegnn.nn.program import Program


def run(program: Program, h: Tensor, adj: Adjacency) -> tuple[Tensor, Exits]:
    r"""Run Algorithm 1 (nodes) or 2 (graphs) from the initial states :math:`\mathbf{H}^0`.

    Args:
        program: what is to be run.
        h: initial states ``[n, m']``.
        adj: the graph.

    Returns:
        Output ``[U, C]`` and :class:`~eegnn.nn.exits.Exits`.
    """
    num_units = h.size(0) if program.level == "node" else adj.num_graphs
    recorder = ExitRecorder(num_units, program.max_layers, program.num_layers, h)
    if program.observe is not None:
        program.observe(h, recorder.log_stay)
    for layer in range(program.max_layers):
        h, delta, drawn, tau = _layer(program, layer, h, adj, recorder.left)
        leave = wants_to_leave(drawn, recorder.decide(delta), program.exit_threshold)
        recorder.step(tau, leave, program.units(h, adj))
        if program.observe is not None:
            program.observe(h, recorder.log_stay)
        if not program.training and bool(recorder.left.all()):
            break
    state, exits = recorder.finish(expected=program.training)
    return program.readout(state), exits


def _layer(
    program: Program, layer: int, h: Tensor, adj: Adjacency, left: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    r"""Let the heads look at :math:`\mathbf{H}^l`, and take the step.

    Returns:
        :math:`\mathbf{H}^{l+1}`; and, ``[U]`` each, :math:`\delta = C_0 - C_1`, the same with
        noise, and the step sizes :math:`\tau`.
    """

    def compute(h: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        delta, inv_temperature = program.look(h, adj)  # C^l and ν^l
        drawn = delta + logistic_noise(delta) if program.noisy else delta
        tau = program.step_sizes(continue_score(drawn, inv_temperature), adj)  # c^l(0)
        if program.freezes:
            tau = tau.masked_fill(left, 0.0)
        h = advance(program.step(layer), h, adj, program.on_nodes(tau, adj))  # H + τ ΔH
        return h, delta, drawn, tau

    if program.recompute and torch.is_grad_enabled():
        return checkpoint(compute, h, use_reentrant=False)
    return compute(h)
