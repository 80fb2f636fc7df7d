r"""The layer of the exit loop for pairs of nodes: links, and labels of edges.

The paper leaves pairs for later. Here the nodes evolve as in SAS-GNN, whichever pairs are predicted
for, and each pair integrates the changes of its own two ends with step sizes of its own. So an
answer depends on the graph and on the two nodes, never on the other pairs of the same call.
"""

from __future__ import annotations

import torch
from torch import Tensor

from eegnn.graph import Adjacency
from eegnn.nn.gumbel import continue_score, logistic_noise
from eegnn.nn.pairs import states_of_ends
from eegnn.nn.program import Program


def take_pair_layer(
    program: Program, layer: int, h: Tensor, z: Tensor, adj: Adjacency, left: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    r"""Let the heads look at the pairs, and take the step.

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
        program: what is run, with ``level="edge"``.
        layer: :math:`l`.
        h: :math:`\mathbf{H}^l`, ``[n, m']``.
        z: :math:`\mathbf{z}^l`, ``[P, 2m']``.
        adj: the graph with pairs.
        left: ``bool [P]``, which pairs have left.

    Returns:
        :math:`\mathbf{H}^{l+1}` and :math:`\mathbf{z}^{l+1}`; and, ``[P]`` each,
        :math:`\delta = C_0 - C_1`, the same with noise, and the step sizes :math:`\tau`.
    """
    assert adj.pairs is not None
    delta, inv_temperature = program.look(h, z, adj)
    drawn = delta + logistic_noise(delta) if program.noisy else delta
    tau = continue_score(drawn, inv_temperature).masked_fill(left, 0.0)
    change = program.node_step_size * program.step(layer)(h, adj).to(h.dtype)
    z = torch.addcmul(z, tau.unsqueeze(-1), states_of_ends(change, adj.pairs))
    return h + change, z, delta, drawn, tau
