"""GatedGCN (Bresson and Laurent, 2017), from PyG's residual gated layer."""

from __future__ import annotations

from torch_geometric.nn import ResGatedGraphConv

from eegnn.nn.steps import ConvStep
from eegnn.zoo.layered import LayeredModel


class GatedGCNStep(ConvStep):
    """One layer of :class:`GatedGCN`: PyG's ``ResGatedGraphConv``, then the activation."""

    def __init__(
        self, channels: int, activation: str = "relu", edge_dim: int | None = None
    ) -> None:
        super().__init__(ResGatedGraphConv(channels, channels, edge_dim=edge_dim), activation)


class GatedGCN(LayeredModel):
    r"""Gated graph convolution: each channel of a message has its own gate.

    .. math::
        \mathbf{h}_i^{l+1} = \sigma\Bigl(\mathbf{W}_1\mathbf{h}_i + \mathbf{b} +
        \sum_{j\in\Gamma(i)} \mathrm{sigmoid}\bigl(\mathbf{W}_2[\mathbf{h}_i \| \mathbf{e}_{ji}] +
        \mathbf{W}_3[\mathbf{h}_j \| \mathbf{e}_{ji}] + \mathbf{b}_{23}\bigr) \odot
        (\mathbf{W}_4[\mathbf{h}_j \| \mathbf{e}_{ji}] + \mathbf{b}_4)\Bigr)

    with the weights of layer :math:`l`.
    """

    step = GatedGCNStep
    uses_edges = True
    supports_directed = True
