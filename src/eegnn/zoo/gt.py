"""GT (Shi et al., 2021): a transformer whose attention stays on the edges."""

from __future__ import annotations

from functools import partial
from typing import Unpack

from torch_geometric.nn import TransformerConv

from eegnn.nn.model import arguments_in
from eegnn.typing import Level
from eegnn.zoo.edges import EdgeStep
from eegnn.zoo.layered import LayerArguments, LayeredModel, head_width


class GTStep(EdgeStep):
    r"""One layer of GT: PyG's ``TransformerConv``, then :math:`\sigma`.

    Args:
        channels: width.
        activation: :math:`\sigma`.
        heads: number of attention heads, each of width ``channels / heads``.
        edge_dim: number of edge features, or ``None``.
    """

    def __init__(
        self,
        channels: int,
        activation: str = "relu",
        heads: int = 1,
        edge_dim: int | None = None,
    ) -> None:
        conv = TransformerConv(channels, head_width(channels, heads), heads, edge_dim=edge_dim)
        super().__init__(conv, activation)


class GT(LayeredModel):
    r"""Graph transformer.

    .. math::
        \mathbf{h}_i^{l+1} = \sigma\Bigl(\mathbf{W}_1\mathbf{h}_i + \mathbf{b}_1 +
        \sum_{j\in\Gamma(i)}\alpha_{ij}(\mathbf{v}_j + \mathbf{W}_e\mathbf{e}_{ji})\Bigr), \qquad
        \alpha_{ij} = \mathrm{softmax}_j\,
        \frac{\mathbf{q}_i^\top(\mathbf{k}_j + \mathbf{W}_e\mathbf{e}_{ji})}{\sqrt{d}}

    with :math:`\mathbf{q}, \mathbf{k}, \mathbf{v}` affine in :math:`\mathbf{h}^l`, and so for each
    head of width :math:`d`; their outputs stand side by side.

    Args:
        in_channels, hidden_channels, out_channels, num_layers, level: see
            :class:`~eegnn.zoo.layered.LayeredModel`, as for ``**kwargs``, among them ``edge_dim``.
        heads: number of attention heads; it divides ``hidden_channels``.
    """

    uses_edges = True

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 10,
        level: Level = "node",
        *,
        heads: int = 1,
        **kwargs: Unpack[LayerArguments],
    ) -> None:
        own = arguments_in(locals())
        super().__init__(
            partial(GTStep, heads=heads, edge_dim=kwargs.get("edge_dim")),
            in_channels,
            hidden_channels,
            out_channels,
            num_layers,
            level,
            **kwargs,
        )
        self.config |= own
