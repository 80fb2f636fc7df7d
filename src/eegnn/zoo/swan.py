"""SWAN (Gravina et al., AAAI 2025): antisymmetric in the weights and over the graph."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from eegnn import _check
from eegnn.graph import Adjacency
from eegnn.nn.activations import ACTIVATIONS
from eegnn.nn.weights import Antisymmetric, Symmetric
from eegnn.zoo.adgn import PHI_NORMS, DampedAntisymmetric, draw_neighbours
from eegnn.zoo.ode import EulerModel

Phi = Literal["antisymmetric", "gcn", "sum"]


class SWANStep(nn.Module):
    r"""The right-hand side of SWAN.

    .. math::
        \Delta\mathbf{H} &= \sigma\bigl(\mathbf{H}(\mathbf{W} - \mathbf{W}^\top -
        \gamma\mathbf{I})^\top + \Phi(\mathbf{H}) + \beta\,\Psi(\mathbf{H}) + \mathbf{b}\bigr) \\
        \Phi(\mathbf{H}) &= \mathbf{D}^{-1/2}\mathbf{A}\mathbf{D}^{-1/2}\mathbf{H}\mathbf{V}_{as},
        \qquad
        \Psi(\mathbf{H}) = (\mathbf{D}^{-1}\mathbf{A} - \mathbf{A}\mathbf{D}^{-1})\mathbf{H}
        \mathbf{Z}_s

    :math:`\Phi` is symmetric over the graph and antisymmetric in the weights, :math:`\Psi` the
    other way round. So with :math:`\gamma = 0` the argument of :math:`\sigma` is an antisymmetric
    map of all states together, and the Jacobian of the whole graph has imaginary eigenvalues, not
    only that of each node as in A-DGN.

    Args:
        channels: width :math:`m'`.
        phi: :math:`\Phi`: ``"antisymmetric"`` as above; or, bounded instead of non-dissipative,
            that of A-DGN with a free weight, ``"gcn"`` or ``"sum"``.
        beta: :math:`\beta`, of either sign.
        gamma: :math:`\gamma`, as in A-DGN.
        activation: :math:`\sigma`, a name from :data:`eegnn.nn.activations.ACTIVATIONS`.
    """

    def __init__(
        self,
        channels: int,
        phi: Phi = "antisymmetric",
        beta: float = 0.1,
        gamma: float = 0.1,
        activation: str = "tanh",
    ) -> None:
        super().__init__()
        self.channels = _check.integer("channels", channels, at_least=1)
        self.phi = _check.choice("phi", phi, ("antisymmetric", *PHI_NORMS))
        self.beta = _check.number("beta", beta, -math.inf)
        self.activation = _check.choice("activation", activation, tuple(ACTIVATIONS))
        self.own = DampedAntisymmetric(channels, gamma)
        self.neighbours: Antisymmetric | nn.Linear = (
            Antisymmetric(channels)
            if phi == "antisymmetric"
            else nn.Linear(channels, channels, bias=False)
        )
        self.differences = Symmetric(channels)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all weights anew, those with a structure as the authors do: as ``Linear``."""
        self.own.reset_parameters()
        bound = self.channels**-0.5
        nn.init.uniform_(self.differences.value, -bound, bound)
        if isinstance(self.neighbours, Antisymmetric):
            nn.init.uniform_(self.neighbours.value, -bound, bound)
        else:
            draw_neighbours(self.neighbours, self.phi)

    def forward(self, h: Tensor, adj: Adjacency) -> Tensor:
        """Return ΔH, ``[n, channels]`` as ``h``."""
        phi = self.neighbours
        weight = phi() if isinstance(phi, Antisymmetric) else phi.weight.T
        around = adj.propagate(h, PHI_NORMS.get(self.phi, "sym"))
        z = torch.addmm(self.own(h), around, weight)
        z = torch.addmm(z, antisymmetric_walk(h, adj), self.differences(), alpha=self.beta)
        return ACTIVATIONS[self.activation](z)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.channels}, phi={self.phi!r}, beta={self.beta:g}, "
            f"gamma={self.own.gamma:g})"
        )


@dataclass(eq=False, repr=False)
class SWAN(EulerModel):
    """Space-Weight Antisymmetric Network: Euler steps of :class:`SWANStep`."""

    _: KW_ONLY
    phi: Phi = "antisymmetric"
    beta: float = 0.1
    gamma: float = 0.1
    activation: str = "tanh"

    step = SWANStep

    def make_step(self) -> SWANStep:
        """Return a new right-hand side."""
        return SWANStep(self.hidden_channels, self.phi, self.beta, self.gamma, self.activation)


def antisymmetric_walk(h: Tensor, adj: Adjacency) -> Tensor:
    r"""Return :math:`(\mathbf{D}^{-1}\mathbf{A} - \mathbf{A}\mathbf{D}^{-1})\mathbf{H}`.

    The random walk minus its transpose, with the entry :math:`1/d_i - 1/d_j` on an edge: nothing
    flows between nodes of the same degree.
    """
    degree = adj.degree.clamp(min=1).to(h.dtype).unsqueeze(-1)
    return adj.propagate(h, "mean") - adj.propagate(h / degree, "sum")
