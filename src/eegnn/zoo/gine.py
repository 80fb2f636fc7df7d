"""GINE (Hu et al., 2020): GIN with edge features."""

from __future__ import annotations

from torch import Tensor
from torch_geometric.nn import GINEConv

from eegnn.graph import Adjacency
from eegnn.nn.activations import ACTIVATIONS
from eegnn.nn.steps import ConvStep
from eegnn.zoo.gin import two_layers
from eegnn.zoo.layered import LayeredModel


class GINEStep(ConvStep):
    r"""One layer of :class:`GINE`, with the weights of PyG's layer.

    Without edge features the message is :math:`\mathrm{ReLU}(\mathbf{h}_j)`.
    """

    conv: GINEConv

    def __init__(
        self, channels: int, activation: str = "relu", edge_dim: int | None = None
    ) -> None:
        super().__init__(GINEConv(two_layers(channels), edge_dim=edge_dim), activation)

    def forward(self, h: Tensor, adj: Adjacency, edge_attr: Tensor | None = None) -> Tensor:
        """Return ``[n, channels]``, from edge features in the order of ``adj.edge_index``."""
        if edge_attr is not None:
            return super().forward(h, adj, edge_attr)
        z = self.conv.nn(h + adj.propagate(h.relu(), "sum"))  # PyG's layer needs edge features
        return ACTIVATIONS[self.activation](z)


class GINE(LayeredModel):
    r"""Graph isomorphism network with edge features.

    .. math::
        \mathbf{h}_i^{l+1} = \sigma\Bigl(\mathrm{MLP}^l\Bigl(\mathbf{h}_i^l + \sum_{j\in\Gamma(i)}
        \mathrm{ReLU}(\mathbf{h}_j^l + \mathbf{W}_e^l\mathbf{e}_{ji} + \mathbf{b}_e^l)\Bigr)\Bigr)
    """

    step = GINEStep
    uses_edges = True
    supports_directed = True
