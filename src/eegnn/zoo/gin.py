"""GIN (Xu et al., 2019)."""

from __future__ import annotations

from typing import Unpack

from torch import Tensor, nn
from torch_geometric.nn import GINConv

from eegnn import _check
from eegnn.graph import Adjacency
from eegnn.nn.activations import ACTIVATIONS
from eegnn.typing import Level
from eegnn.zoo.layered import LayerArguments, LayeredModel


class GINStep(nn.Module):
    r"""One layer of GIN: :math:`\sigma(\mathrm{MLP}(\mathbf{H} + \mathbf{A}\mathbf{H}))`.

    The weights are those of PyG's layer, around :func:`two_layers`.

    Args:
        channels: width.
        activation: :math:`\sigma`.
    """

    def __init__(self, channels: int, activation: str = "relu") -> None:
        super().__init__()
        self.channels = channels
        self.activation = _check.choice("activation", activation, tuple(ACTIVATIONS))
        self.conv = GINConv(two_layers(channels))

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        self.conv.reset_parameters()

    def forward(self, h: Tensor, adj: Adjacency) -> Tensor:
        """Return ``[n, channels]``."""
        return ACTIVATIONS[self.activation](self.conv.nn(h + adj.propagate(h, "sum")))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.channels}, activation={self.activation!r})"


class GIN(LayeredModel):
    r"""Graph isomorphism network, GIN-0: sums tell multisets of neighbours apart.

    .. math::
        \mathbf{h}_i^{l+1} = \sigma\Bigl(\mathrm{MLP}^l\Bigl(\mathbf{h}_i^l +
        \sum_{j\in\Gamma(i)}\mathbf{h}_j^l\Bigr)\Bigr)

    Sums make states grow with the degree, layer after layer: deep models of it want
    ``activation="relu_tanh"`` or ``conv_norm``.

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
            GINStep, in_channels, hidden_channels, out_channels, num_layers, level, **kwargs
        )


def two_layers(channels: int) -> nn.Sequential:
    """The perceptron of GIN: Linear → ReLU → Linear, all of one width."""
    return nn.Sequential(nn.Linear(channels, channels), nn.ReLU(), nn.Linear(channels, channels))
