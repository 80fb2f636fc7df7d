r"""The exit loop for pairs of nodes: links, and labels of edges.

The paper leaves pairs for later. Here the nodes evolve as in SAS-GNN, whoever is asked for, and
each pair integrates the changes of its own two ends with step sizes of its own. So an answer
depends on the graph and on the two nodes, never on the other pairs that are asked for with it.
"""

from __future__ import annotations

import torch
from torch import Tensor

from eegnn._tracing import is_traced
from eegnn.graph import Adjacency
from eegnn.nn.exit_rule import wants_to_leave
from eegnn.nn.exits import ExitRecorder, Exits
from eegnn.nn.gumbel import continue_score, logistic_noise
from eegnn.nn.pairs import states_of_ends
from eegnn.nn.program import Program


def run(program: Program, h: Tensor, adj: Adjacency) -> tuple[Tensor, Exits]:
    r"""Run the loop for ``adj.pairs`` from the initial states :math:`\mathbf{H}^0`.

    With a step size :math:`s` of the nodes, which is 1 for ``step_size="adaptive"``, and a pair
    :math:`p = (i, j)` with :math:`\mathbf{z}_p^0 = \mathbf{h}_i^0 \,\|\, \mathbf{h}_j^0`:

    .. math::
        \tau_p^l &= \sigma\bigl((\delta_p^l + g_0 - g_1)/\nu_p^l\bigr), \qquad
        \delta_p^l, \nu_p^l \text{ from } \mathbf{z}_i + \mathbf{z}_j \,\|\,
        \mathbf{z}_i \odot \mathbf{z}_j \,\|\, |\mathbf{z}_i - \mathbf{z}_j| \text{ of }
        \mathbf{z}_p^l \\
        \mathbf{z}_p^{l+1} &= \mathbf{z}_p^l
        + \tau_p^l\, s\, (\Delta\mathbf{h}_i^l \,\|\, \Delta\mathbf{h}_j^l) \\
        \mathbf{H}^{l+1} &= \mathbf{H}^l + s\, \Delta\mathbf{H}^l

    As in Algorithm 1, a pair for which *exit* has the larger score leaves with the state after this
    step, :math:`\mathbf{z}_p^{l+1}`, which contains :math:`\tau_p^l`: so every decision gets a
    gradient from the loss of the task.

    Args:
        program: what is to be run, with ``level="edge"``.
        h: initial states ``[n, m']``.
        adj: the graph with pairs.

    Returns:
        Output ``[P, C]`` and :class:`~eegnn.nn.exits.Exits` of the pairs.
    """
    z = program.units(h, adj)
    recorder = ExitRecorder(z.size(0), program.max_layers, program.num_layers, h)
    if program.observe is not None:
        program.observe(z, recorder.log_stay)
    for layer in range(program.max_layers):
        h, z, delta, drawn, tau = program.recomputed(
            take_pair_layer, program, layer, h, z, adj, recorder.left
        )
        leave = wants_to_leave(drawn, recorder.decide(delta), program.exit_threshold)
        recorder.step(tau, leave, z)
        if program.observe is not None:
            program.observe(z, recorder.log_stay)
        if not (program.training or is_traced()) and bool(recorder.left.all()):
            break
    state, exits = recorder.finish(expected=program.training)
    return program.readout(state), exits


def take_pair_layer(
    program: Program, layer: int, h: Tensor, z: Tensor, adj: Adjacency, left: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    r"""Let the heads look at the pairs, and take the step.

    Returns:
        :math:`\mathbf{H}^{l+1}` ``[n, m']`` and :math:`\mathbf{z}^{l+1}` ``[P, 2m']``; and, ``[P]``
        each, :math:`\delta = C_0 - C_1`, the same with noise, and the step sizes :math:`\tau`.
    """
    assert adj.pairs is not None
    delta, inv_temperature = program.look(z, adj)
    drawn = delta + logistic_noise(delta) if program.noisy else delta
    tau = continue_score(drawn, inv_temperature).masked_fill(left, 0.0)
    change = program.node_step_size * program.step(layer)(h, adj).to(h.dtype)
    z = torch.addcmul(z, tau.unsqueeze(-1), states_of_ends(change, adj.pairs))
    return h + change, z, delta, drawn, tau
