"""Algorithms 1 and 2: the loop in which every unit decides when to leave.

This is the reference, to be read beside the paper. Training runs it as it stands; whatever runs
faster is in :mod:`eegnn.engine` and is tested against it.
"""

from __future__ import annotations

import torch
from torch import Tensor

from eegnn._tracing import is_traced
from eegnn.graph import Adjacency
from eegnn.nn.exit_rule import wants_to_leave
from eegnn.nn.exits import ExitRecorder, Exits
from eegnn.nn.gumbel import continue_score, logistic_noise
from eegnn.nn.pair_loop import take_pair_layer
from eegnn.nn.program import Program


def run(program: Program, h: Tensor, adj: Adjacency) -> tuple[Tensor, Exits]:
    r"""Run Algorithm 1 (nodes) or 2 (graphs) from the initial states :math:`\mathbf{H}^0`.

    Pairs of nodes take layers of their own, :func:`eegnn.nn.pair_loop.take_pair_layer`.

    Args:
        program: what is to be run.
        h: initial states ``[n, m']``.
        adj: the graph.

    Returns:
        Output ``[U, C]`` and :class:`~eegnn.nn.exits.Exits`.
    """
    if program.confidence is None:
        return _run_to_the_end(program, h, adj)
    pairs = program.level == "edge"
    take = take_pair_layer if pairs else take_layer
    z = program.units(h, adj)  # what the readout decodes: h itself, or pooled, or of pairs
    recorder = ExitRecorder(z.size(0), program.max_layers, program.num_layers, h)
    if program.observe is not None:
        program.observe(z if pairs else h, recorder.log_stay)
    for layer in range(program.max_layers):
        h, z, delta, drawn, tau = program.recomputed(take, program, layer, h, z, adj, recorder.left)
        leave = wants_to_leave(drawn, recorder.decide(delta), program.exit_threshold)
        recorder.step(tau, leave, z)
        if program.observe is not None:
            program.observe(z if pairs else h, recorder.log_stay)
        if not (program.training or is_traced()) and bool(recorder.left.all()):
            break
    state, exits = recorder.finish(expected=program.training)
    return program.readout(state), exits


def take_layer(
    program: Program, layer: int, h: Tensor, z: Tensor, adj: Adjacency, left: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    r"""Let the heads look at :math:`\mathbf{H}^l`, and take the step.

    Args:
        program: what is run.
        layer: :math:`l`.
        h: :math:`\mathbf{H}^l`, ``[n, m']``.
        z: the states of the units, ``program.units(h, adj)``.
        adj: the graph.
        left: ``bool [U]``, which units have left.

    Returns:
        :math:`\mathbf{H}^{l+1}` and the states of the units after the step; and, ``[U]`` each,
        :math:`\delta = C_0 - C_1`, the same with noise, and the step sizes :math:`\tau`.
    """
    delta, inv_temperature = program.look(h, z, adj)  # C^l and ν^l
    drawn = delta + logistic_noise(delta) if program.noisy else delta
    tau = program.step_sizes(continue_score(drawn, inv_temperature), adj)  # c^l(0)
    if program.freezes:
        tau = tau.masked_fill(left, 0.0)
    change = program.step(layer)(h, adj).to(h.dtype)
    h = torch.addcmul(h, program.on_nodes(tau, adj).unsqueeze(-1), change)  # H + τ ΔH
    return h, program.units(h, adj), delta, drawn, tau


def _run_to_the_end(program: Program, h: Tensor, adj: Adjacency) -> tuple[Tensor, Exits]:
    """Take all steps with one step size, as SAS-GNN does (Eq. 2)."""
    tau = float(program.step_size)

    def step(layer: int, h: Tensor) -> Tensor:
        return torch.add(h, program.step(layer)(h, adj).to(h.dtype), alpha=tau)

    for layer in range(program.max_layers):
        h = program.recomputed(step, layer, h)
    units = program.units(h, adj)
    return program.readout(units), Exits.all_at(program.max_layers, program.num_layers, units, tau)
