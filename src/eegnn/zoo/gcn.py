"""GCN (Kipf and Welling, 2017)."""

from __future__ import annotations

from typing import Unpack

import torch
from torch import Tensor, nn
from torch_geometric.nn import GCNConv

from eegnn import _check
from eegnn.graph import Adjacency
from eegnn.nn.activations import ACTIVATIONS
from eegnn.typing import Level
from eegnn.zoo.layered import LayerArguments, LayeredModel


class GCNStep(nn.Module):
    r"""One layer of GCN: :math:`\sigma(\tilde{\mathbf D}^{-1/2}\tilde{\mathbf A}
    \tilde{\mathbf D}^{-1/2}\mathbf{H}\mathbf{W} + \mathbf{b})`, with self-loops in
    :math:`\tilde{\mathbf A} = \mathbf{A} + \mathbf{I}`.

    The weights are those of PyG's layer.

    Args:
        channels: width.
        activation: :math:`\sigma`.
    """

    def __init__(self, channels: int, activation: str = "relu") -> None:
        super().__init__()
        self.activation = _check.choice("activation", activation, tuple(ACTIVATIONS))
        self.conv = GCNConv(channels, channels)

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        self.conv.reset_parameters()

    def forward(self, h: Tensor, adj: Adjacency) -> Tensor:
        """Return ``[n, channels]``."""
        z = propagate_with_self_loops(adj, self.conv.lin(h)) + self.conv.bias
        return ACTIVATIONS[self.activation](z)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.conv.in_channels}, activation={self.activation!r})"


class GCN(LayeredModel):
    r"""Graph convolutional network.

    .. math::
        \mathbf{H}^{l+1} = \sigma\bigl(\tilde{\mathbf D}^{-1/2}\tilde{\mathbf A}
        \tilde{\mathbf D}^{-1/2}\mathbf{H}^l\mathbf{W}^l + \mathbf{b}^l\bigr)

    with self-loops in :math:`\tilde{\mathbf A}`.

    Args:
        in_channels, hidden_channels, out_channels, num_layers, level: see
            :class:`~eegnn.zoo.layered.LayeredModel`, as for ``**kwargs``.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 10,
        level: Level = "node",
        **kwargs: Unpack[LayerArguments],
    ) -> None:
        super().__init__(
            GCNStep, in_channels, hidden_channels, out_channels, num_layers, level, **kwargs
        )


def propagate_with_self_loops(adj: Adjacency, x: Tensor) -> Tensor:
    r"""Return :math:`\tilde{\mathbf D}^{-1/2}(\mathbf{A} + \mathbf{I})\tilde{\mathbf D}^{-1/2}
    \mathbf{X}`, from the graph without self-loops.

    Args:
        adj: the graph.
        x: ``[n, d]``.
    """
    scale = (adj.degree + 1).to(torch.float64).rsqrt().to(x.dtype).unsqueeze(-1)
    x = scale * x
    return scale * (adj.propagate(x, "sum") + x)
