"""GAT (Veličković et al., 2018)."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from torch_geometric.nn import GATConv

from eegnn.nn.steps import ConvStep
from eegnn.zoo.layered import LayeredModel, head_width


class GATStep(ConvStep):
    """One layer of :class:`GAT`: PyG's ``GATConv``, then the activation."""

    def __init__(self, channels: int, activation: str = "relu", heads: int = 1) -> None:
        super().__init__(GATConv(channels, head_width(channels, heads), heads), activation)


@dataclass(eq=False, repr=False)
class GAT(LayeredModel):
    r"""Graph attention network.

    .. math::
        \mathbf{h}_i^{l+1} = \sigma\Bigl(\mathbf{b}^l + \sum_{j\in\Gamma(i)\cup\{i\}}
        \alpha_{ij}\mathbf{W}^l\mathbf{h}_j^l\Bigr), \qquad
        \alpha_{ij} = \mathrm{softmax}_j\,\mathrm{LeakyReLU}\bigl(
        \mathbf{a}_1^\top\mathbf{W}^l\mathbf{h}_i^l + \mathbf{a}_2^\top\mathbf{W}^l\mathbf{h}_j^l
        \bigr)

    for each head; the outputs of the heads are concatenated.

    Args:
        heads: number of attention heads; it divides ``hidden_channels``.
    """

    _: KW_ONLY
    heads: int = 1

    step = GATStep
    supports_directed = True

    def make_step(self, layer: int) -> GATStep:
        """Return a new layer."""
        return GATStep(self.hidden_channels, self.activation, self.heads)
