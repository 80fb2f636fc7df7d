"""GINE (Hu et al., 2020): GIN with edge features."""

from __future__ import annotations

from functools import partial
from typing import Unpack

from torch import Tensor, nn
from torch_geometric.nn import GINEConv

from eegnn import _check
from eegnn.graph import Adjacency
from eegnn.nn.activations import ACTIVATIONS
from eegnn.typing import Level
from eegnn.zoo.gin import two_layers
from eegnn.zoo.layered import LayerArguments, LayeredModel


class GINEStep(nn.Module):
    r"""One layer of GINE: :math:`\sigma\bigl(\mathrm{MLP}\bigl(\mathbf{h}_i + \sum_j
    \mathrm{ReLU}(\mathbf{h}_j + \mathbf{W}_e\mathbf{e}_{ji} + \mathbf{b}_e)\bigr)\bigr)`.

    Args:
        channels: width.
        activation: :math:`\sigma`.
        edge_dim: number of edge features; without any, the message is
            :math:`\mathrm{ReLU}(\mathbf{h}_j)`.
    """

    def __init__(
        self, channels: int, activation: str = "relu", edge_dim: int | None = None
    ) -> None:
        super().__init__()
        self.channels = channels
        self.activation = _check.choice("activation", activation, tuple(ACTIVATIONS))
        self.conv = GINEConv(two_layers(channels), edge_dim=edge_dim)

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        self.conv.reset_parameters()

    def forward(self, h: Tensor, adj: Adjacency, edge_attr: Tensor | None = None) -> Tensor:
        """Return ``[n, channels]``, from edge features in the order of ``adj.edge_index``."""
        if edge_attr is None:  # PyG's layer insists on them
            z = self.conv.nn(h + adj.propagate(h.relu(), "sum"))
        else:
            z = self.conv(h, adj.edge_index, edge_attr)
        return ACTIVATIONS[self.activation](z)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.channels}, activation={self.activation!r})"


class GINE(LayeredModel):
    r"""Graph isomorphism network with edge features.

    .. math::
        \mathbf{h}_i^{l+1} = \sigma\Bigl(\mathrm{MLP}^l\Bigl(\mathbf{h}_i^l + \sum_{j\in\Gamma(i)}
        \mathrm{ReLU}(\mathbf{h}_j^l + \mathbf{W}_e^l\mathbf{e}_{ji} + \mathbf{b}_e^l)\Bigr)\Bigr)

    Args:
        in_channels, hidden_channels, out_channels, num_layers, level: see
            :class:`~eegnn.zoo.layered.LayeredModel`, as for ``**kwargs``, among them ``edge_dim``.
    """

    uses_edges = True

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
            partial(GINEStep, edge_dim=kwargs.get("edge_dim")),
            in_channels,
            hidden_channels,
            out_channels,
            num_layers,
            level,
            **kwargs,
        )
