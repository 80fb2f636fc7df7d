"""GIN (Xu et al., 2019)."""

from __future__ import annotations

from torch import Tensor, nn
from torch_geometric.nn import GINConv

from eegnn.graph import Adjacency
from eegnn.nn.activations import ACTIVATIONS
from eegnn.nn.steps import ConvStep
from eegnn.zoo.layered import LayeredModel


class GINStep(ConvStep):
    """One layer of :class:`GIN`, with the weights of PyG's layer around :func:`two_layers`."""

    conv: GINConv

    def __init__(self, channels: int, activation: str = "relu") -> None:
        super().__init__(GINConv(two_layers(channels)), activation)

    def forward(self, h: Tensor, adj: Adjacency) -> Tensor:  # type: ignore[override]
        """Return the new states ``[n, channels]``, propagated over the CSR structure."""
        return ACTIVATIONS[self.activation](self.conv.nn(h + adj.propagate(h, "sum")))


class GIN(LayeredModel):
    r"""Graph isomorphism network, GIN-0: sums tell multisets of neighbours apart.

    .. math::
        \mathbf{h}_i^{l+1} = \sigma\Bigl(\mathrm{MLP}^l\Bigl(\mathbf{h}_i^l +
        \sum_{j\in\Gamma(i)}\mathbf{h}_j^l\Bigr)\Bigr)

    Sums make states grow with the degree, layer after layer: deep models need
    ``activation="relu_tanh"`` or ``conv_norm``.
    """

    step = GINStep
    supports_edge_weight = True
    supports_directed = True


def two_layers(channels: int) -> nn.Sequential:
    """Return the perceptron of GIN: Linear → ReLU → Linear, all of one width."""
    return nn.Sequential(nn.Linear(channels, channels), nn.ReLU(), nn.Linear(channels, channels))
