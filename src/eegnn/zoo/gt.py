"""GT (Shi et al., 2021): a transformer whose attention stays on the edges."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from torch_geometric.nn import TransformerConv

from eegnn.nn.steps import ConvStep
from eegnn.zoo.layered import LayeredModel, head_width


@dataclass(eq=False, repr=False)
class GT(LayeredModel):
    r"""Graph transformer.

    .. math::
        \mathbf{h}_i^{l+1} = \sigma\Bigl(\mathbf{W}_1\mathbf{h}_i + \mathbf{b}_1 +
        \sum_{j\in\Gamma(i)}\alpha_{ij}(\mathbf{v}_j + \mathbf{W}_e\mathbf{e}_{ji})\Bigr), \qquad
        \alpha_{ij} = \mathrm{softmax}_j\,
        \frac{\mathbf{q}_i^\top(\mathbf{k}_j + \mathbf{W}_e\mathbf{e}_{ji})}{\sqrt{d}}

    with :math:`\mathbf{q}, \mathbf{k}, \mathbf{v}` affine in :math:`\mathbf{h}^l`, for each head of
    width :math:`d`; the outputs of the heads are concatenated.

    Args:
        heads: number of attention heads; it divides ``hidden_channels``.
    """

    _: KW_ONLY
    heads: int = 1

    uses_edges = True
    supports_directed = True

    def make_step(self, layer: int) -> ConvStep:
        """Return a new layer: PyG's ``TransformerConv``, then the activation."""
        channels, heads = self.hidden_channels, self.heads
        width = head_width(channels, heads)
        conv = TransformerConv(channels, width, heads, edge_dim=self.edge_dim)
        return ConvStep(conv, self.activation)
