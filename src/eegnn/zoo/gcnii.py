"""GCNII (Chen et al., 2020): initial residual and identity mapping."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

import torch
from torch import Tensor
from torch_geometric.nn import GCN2Conv

from eegnn import _check
from eegnn.graph import Adjacency
from eegnn.nn.activations import ACTIVATIONS
from eegnn.nn.steps import ConvStep
from eegnn.zoo.gcn import propagate_with_self_loops
from eegnn.zoo.layered import LayeredModel


class GCNIIStep(ConvStep):
    r"""Layer :math:`l = 1, 2, \dots` of :class:`GCNII`, with the weights of PyG's layer."""

    conv: GCN2Conv

    def __init__(
        self, channels: int, activation: str, alpha: float, theta: float, layer: int
    ) -> None:
        _check.number("alpha", alpha, 0, 1)
        _check.number("theta", theta, 0)
        super().__init__(GCN2Conv(channels, alpha, theta, layer), activation)

    def forward(self, h: Tensor, adj: Adjacency, initial: Tensor) -> Tensor:  # type: ignore[override]
        """Return ``[n, channels]``, from the states ``h`` and the ``initial`` ones."""
        alpha, beta = self.conv.alpha, self.conv.beta
        mixed = torch.lerp(propagate_with_self_loops(adj, h), initial, alpha)
        z = torch.addmm(mixed, mixed, self.conv.weight1, beta=1 - beta, alpha=beta)
        return ACTIVATIONS[self.activation](z)


@dataclass(eq=False, repr=False)
class GCNII(LayeredModel):
    r"""Deep GCN with a part of the initial states in each layer and weights near the identity.

    .. math::
        \mathbf{H}^{l} = \sigma\Bigl(\bigl((1-\alpha)\tilde{\mathbf D}^{-1/2}\tilde{\mathbf A}
        \tilde{\mathbf D}^{-1/2}\mathbf{H}^{l-1} + \alpha\mathbf{H}^0\bigr)
        \bigl((1-\beta_l)\mathbf{I} + \beta_l\mathbf{W}^l\bigr)\Bigr), \qquad
        \beta_l = \log(\theta/l + 1)

    with self-loops in :math:`\tilde{\mathbf A}`. With ``shared=True`` the only layer is the first
    one, and :math:`\beta_1` is that of all.

    Args:
        alpha: share :math:`\alpha` of the initial states.
        theta: :math:`\theta`, how far weights are from the identity.
    """

    _: KW_ONLY
    alpha: float = 0.1
    theta: float = 0.5

    def make_step(self, layer: int) -> GCNIIStep:
        """Return a new layer of this number."""
        return GCNIIStep(self.hidden_channels, self.activation, self.alpha, self.theta, layer)

    def layer_inputs(
        self, h: Tensor, adj: Adjacency, edge_attr: Tensor | None
    ) -> tuple[Tensor, ...]:
        """Return the initial states."""
        return (h,)
