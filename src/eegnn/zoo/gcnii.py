"""GCNII (Chen et al., 2020): initial residual and identity mapping."""

from __future__ import annotations

import itertools
from typing import Unpack

import torch
from torch import Tensor, nn
from torch_geometric.nn import GCN2Conv

from eegnn import _check
from eegnn.graph import Adjacency
from eegnn.nn.activations import ACTIVATIONS
from eegnn.nn.model import arguments_in
from eegnn.typing import Level
from eegnn.zoo.gcn import propagate_with_self_loops
from eegnn.zoo.layered import LayerArguments, LayeredModel


class GCNIIStep(nn.Module):
    r"""Layer :math:`l` of GCNII, see :class:`GCNII`. The weights are those of PyG's layer.

    Args:
        channels: width.
        activation: :math:`\sigma`.
        alpha: share :math:`\alpha` of the initial states.
        theta: :math:`\theta`, with :math:`\beta_l = \log(\theta/l + 1)`.
        layer: :math:`l`, from 1.
    """

    def __init__(
        self,
        channels: int,
        activation: str = "relu",
        alpha: float = 0.1,
        theta: float = 0.5,
        layer: int = 1,
    ) -> None:
        super().__init__()
        self.activation = _check.choice("activation", activation, tuple(ACTIVATIONS))
        _check.number("alpha", alpha, 0, 1)
        _check.number("theta", theta, 0)
        self.conv = GCN2Conv(channels, alpha, theta, layer)

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        self.conv.reset_parameters()

    def forward(self, h: Tensor, adj: Adjacency, initial: Tensor) -> Tensor:
        """Return ``[n, channels]``, from the states ``h`` and the ``initial`` ones."""
        alpha, beta = self.conv.alpha, self.conv.beta
        mixed = torch.lerp(propagate_with_self_loops(adj, h), initial, alpha)
        z = torch.addmm(mixed, mixed, self.conv.weight1, beta=1 - beta, alpha=beta)
        return ACTIVATIONS[self.activation](z)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.conv.channels}, activation={self.activation!r})"


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
        in_channels, hidden_channels, out_channels, num_layers, level: see
            :class:`~eegnn.zoo.layered.LayeredModel`, as for ``**kwargs``.
        alpha: :math:`\alpha`.
        theta: :math:`\theta`.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 10,
        level: Level = "node",
        *,
        alpha: float = 0.1,
        theta: float = 0.5,
        **kwargs: Unpack[LayerArguments],
    ) -> None:
        own = arguments_in(locals())
        number = itertools.count(1)

        def make_step(channels: int, activation: str) -> GCNIIStep:
            return GCNIIStep(channels, activation, alpha, theta, next(number))

        super().__init__(
            make_step, in_channels, hidden_channels, out_channels, num_layers, level, **kwargs
        )
        self.config |= own

    def constants(self, h: Tensor, adj: Adjacency, edge_attr: Tensor | None) -> tuple[Tensor, ...]:
        """Return the initial states."""
        return (h,)
