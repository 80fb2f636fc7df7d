"""The energy that SAS-GNN never increases (Eq. 3, Theorem 2)."""

from __future__ import annotations

from torch import Tensor

from eegnn.graph import Adjacency
from eegnn.nn.sas_conv import SASConv


def energy(h: Tensor, adj: Adjacency, weight: Tensor) -> Tensor:
    r"""Return the energy functional (Eq. 3).

    .. math::
        E_\theta(\mathbf{H}) = -\sum_{i,j} \bar a_{ij}\,
        \langle\mathbf{h}_i, \mathbf{W}_s\mathbf{h}_j\rangle
        = -\langle\mathbf{H}, \mathbf{\bar A}\mathbf{H}\mathbf{W}_s\rangle

    It is unbounded below: to minimise it is a direction, not an end.

    Args:
        h: ``[n, m']``, or ``[L + 1, n, m']`` for all layers.
        adj: the graph.
        weight: :math:`\mathbf{W}_s` ``[m', m']``, ``conv.weight`` of a :class:`~eegnn.SASConv`.

    Returns:
        A scalar, or ``[L + 1]``.
    """
    layers = h.dim() - 2
    columns = h.movedim(-2, 0).flatten(1)  # all layers side by side: one product for them all
    around = adj.propagate(columns, "sym").unflatten(1, (*h.shape[:layers], -1)).movedim(0, -2)
    return -(h * (around @ weight)).sum(dim=(-2, -1))


def energy_rate(
    conv: SASConv, h: Tensor, adj: Adjacency, edge_attr: Tensor | None = None
) -> Tensor:
    r"""Return the rate at which the flow changes the energy, never positive (Theorems 2 and 3).

    .. math::
        \frac{dE_\theta}{dt} = \langle\nabla E_\theta, \dot{\mathbf{H}}\rangle
        = -2\,\langle\mathbf{\bar A}\mathbf{H}\mathbf{W}_s, \dot{\mathbf{H}}\rangle

    An entry of :math:`\mathbf{Z} = \mathbf{\bar A}\mathbf{H}\mathbf{W}_s` either is positive where
    :math:`\dot{\mathbf{H}}` is, or meets a zero. (The paper leaves out the 2 of the gradient.) It
    holds for the flow; a step of finite size changes the energy by
    :math:`\tau\,dE/dt - \tau^2\langle\dot{\mathbf{H}}, \mathbf{\bar A}\dot{\mathbf{H}}\mathbf{W}_s
    \rangle`, and the last term may have either sign.

    Args:
        conv: the right-hand side, with :math:`\sigma_1, \sigma_2 \ge 0` for the theorem to hold.
        h, adj, edge_attr: what it is given, states ``[n, m']`` first.
    """
    pull = adj.propagate(h, "sym") @ conv.weight
    return -2 * (pull * conv(h, adj, edge_attr)).sum()
