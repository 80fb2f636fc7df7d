"""A-DGN (Gravina, Bacciu and Gallicchio, ICLR 2023): an antisymmetric weight on a node's state."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from eegnn import _check
from eegnn.graph import Adjacency, Norm
from eegnn.nn.activations import ACTIVATIONS
from eegnn.zoo.ode import EulerModel

Phi = Literal["gcn", "sum"]
#: How Φ weighs the neighbours.
PHI_NORMS: dict[str, Norm] = {"gcn": "sym", "sum": "sum"}


class ADGNStep(nn.Module):
    r"""The right-hand side of A-DGN.

    .. math::
        \Delta\mathbf{H} = \sigma\bigl(\mathbf{H}(\mathbf{W} - \mathbf{W}^\top -
        \gamma\mathbf{I})^\top + \mathbf{\bar A}\mathbf{H}\mathbf{V}^\top + \mathbf{b}\bigr)

    Without self-loops in :math:`\mathbf{\bar A}` and with :math:`\gamma = 0`, each node's own
    Jacobian is a diagonal matrix times an antisymmetric one, and so has imaginary eigenvalues.

    Args:
        channels: width :math:`m'`.
        phi: :math:`\mathbf{\bar A}`: ``"gcn"`` for
            :math:`\mathbf{D}^{-1/2}\mathbf{A}\mathbf{D}^{-1/2}`, ``"sum"`` for
            :math:`\mathbf{A}`.
        gamma: :math:`\gamma`, a little diffusion that keeps the explicit Euler method stable.
        activation: :math:`\sigma`, a name from :data:`eegnn.nn.activations.ACTIVATIONS`.
    """

    def __init__(
        self, channels: int, phi: Phi = "gcn", gamma: float = 0.1, activation: str = "tanh"
    ) -> None:
        super().__init__()
        self.channels = _check.integer("channels", channels, at_least=1)
        self.phi = _check.choice("phi", phi, tuple(PHI_NORMS))
        self.activation = _check.choice("activation", activation, tuple(ACTIVATIONS))
        self.own = DampedAntisymmetric(channels, gamma)
        self.neighbours = nn.Linear(channels, channels, bias=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        self.own.reset_parameters()
        draw_neighbours(self.neighbours, self.phi)

    def forward(self, h: Tensor, adj: Adjacency) -> Tensor:
        """Return ΔH, ``[n, channels]`` as ``h``."""
        around = adj.propagate(h, PHI_NORMS[self.phi])
        z = torch.addmm(self.own(h), around, self.neighbours.weight.T)
        return ACTIVATIONS[self.activation](z)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.channels}, phi={self.phi!r}, gamma={self.own.gamma:g})"


@dataclass(eq=False, repr=False)
class ADGN(EulerModel):
    r"""Anti-Symmetric Deep Graph Network: Euler steps of :class:`ADGNStep`, which has the equation.

    PyG's ``AntiSymmetricConv`` is one such step; the states here are propagated by the library's
    own sparse product, and no node is its own neighbour, as the theory asks.
    """

    _: KW_ONLY
    phi: Phi = "gcn"
    gamma: float = 0.1
    activation: str = "tanh"

    step = ADGNStep
    supports_edge_weight = True
    supports_directed = True

    def make_step(self) -> ADGNStep:
        """Return a new right-hand side."""
        return ADGNStep(self.hidden_channels, self.phi, self.gamma, self.activation)


class DampedAntisymmetric(nn.Linear):
    r""":math:`\mathbf{H}(\mathbf{W} - \mathbf{W}^\top - \gamma\mathbf{I})^\top + \mathbf{b}`.

    :math:`\mathbf{W}` and :math:`\mathbf{b}` are stored and drawn as :class:`torch.nn.Linear` does,
    and as the authors do.
    """

    def __init__(self, channels: int, gamma: float) -> None:
        super().__init__(channels, channels)
        self.gamma = _check.number("gamma", gamma, 0)

    @property
    def matrix(self) -> Tensor:
        """``[m', m']``, as used in ``H @ matrix.T``."""
        weight = self.weight
        eye = torch.eye(self.in_features, dtype=weight.dtype, device=weight.device)
        return weight - weight.T - self.gamma * eye

    def forward(self, h: Tensor) -> Tensor:
        """Multiply states ``[n, m']`` by the antisymmetric matrix, and add the bias."""
        return nn.functional.linear(h, self.matrix, self.bias)


def draw_neighbours(lin: nn.Linear, phi: str) -> None:
    """Draw the weight of Φ as PyG's ``GCNConv`` does for ``"gcn"``, else as ``Linear`` does."""
    if phi == "gcn":
        nn.init.xavier_uniform_(lin.weight)
    else:
        lin.reset_parameters()
