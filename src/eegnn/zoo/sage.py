"""GraphSAGE (Hamilton et al., 2017) with the mean aggregator."""

from __future__ import annotations

from typing import Unpack

from torch import Tensor, nn
from torch_geometric.nn import SAGEConv

from eegnn import _check
from eegnn.graph import Adjacency
from eegnn.nn.activations import ACTIVATIONS
from eegnn.typing import Level
from eegnn.zoo.layered import LayerArguments, LayeredModel


class SAGEStep(nn.Module):
    r"""One layer of GraphSAGE: :math:`\sigma(\mathbf{D}^{-1}\mathbf{A}\mathbf{H}\mathbf{W}_1
    + \mathbf{b} + \mathbf{H}\mathbf{W}_2)`.

    The weights are those of PyG's layer.

    Args:
        channels: width.
        activation: :math:`\sigma`.
    """

    def __init__(self, channels: int, activation: str = "relu") -> None:
        super().__init__()
        self.activation = _check.choice("activation", activation, tuple(ACTIVATIONS))
        self.conv = SAGEConv(channels, channels)

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        self.conv.reset_parameters()

    def forward(self, h: Tensor, adj: Adjacency) -> Tensor:
        """Return ``[n, channels]``."""
        z = self.conv.lin_l(adj.propagate(h, "mean")) + self.conv.lin_r(h)
        return ACTIVATIONS[self.activation](z)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.conv.in_channels}, activation={self.activation!r})"


class GraphSAGE(LayeredModel):
    r"""GraphSAGE: a node is told apart from the mean of its neighbours.

    .. math::
        \mathbf{h}_i^{l+1} = \sigma\bigl(\mathbf{W}_1^l\,\mathrm{mean}_{j\in\Gamma(i)}
        \mathbf{h}_j^l + \mathbf{b}^l + \mathbf{W}_2^l\mathbf{h}_i^l\bigr)

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
            SAGEStep, in_channels, hidden_channels, out_channels, num_layers, level, **kwargs
        )
