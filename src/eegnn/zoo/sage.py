"""GraphSAGE (Hamilton et al., 2017) with the mean aggregator."""

from __future__ import annotations

from torch import Tensor
from torch_geometric.nn import SAGEConv

from eegnn.graph import Adjacency
from eegnn.nn.activations import ACTIVATIONS
from eegnn.nn.steps import ConvStep
from eegnn.zoo.layered import LayeredModel


class SAGEStep(ConvStep):
    """One layer of :class:`GraphSAGE`, with the weights of PyG's layer."""

    conv: SAGEConv

    def __init__(self, channels: int, activation: str = "relu") -> None:
        super().__init__(SAGEConv(channels, channels), activation)

    def forward(self, h: Tensor, adj: Adjacency) -> Tensor:  # type: ignore[override]
        """Return the new states ``[n, channels]``, propagated over the CSR structure."""
        z = self.conv.lin_l(adj.propagate(h, "mean")) + self.conv.lin_r(h)
        return ACTIVATIONS[self.activation](z)


class GraphSAGE(LayeredModel):
    r"""GraphSAGE: separate weights for a node and for the mean of its neighbours.

    .. math::
        \mathbf{h}_i^{l+1} = \sigma\bigl(\mathbf{W}_1^l\,\mathrm{mean}_{j\in\Gamma(i)}
        \mathbf{h}_j^l + \mathbf{b}^l + \mathbf{W}_2^l\mathbf{h}_i^l\bigr)
    """

    step = SAGEStep
    supports_edge_weight = True
    supports_directed = True
