"""GAT (Veličković et al., 2018)."""

from __future__ import annotations

from functools import partial
from typing import Unpack

from torch_geometric.nn import GATConv

from eegnn.nn.model import arguments_in
from eegnn.nn.steps import ConvStep
from eegnn.typing import Level
from eegnn.zoo.layered import LayerArguments, LayeredModel, head_width


class GATStep(ConvStep):
    r"""One layer of GAT: PyG's ``GATConv``, then :math:`\sigma`.

    Args:
        channels: width.
        activation: :math:`\sigma`.
        heads: number of attention heads, each of width ``channels / heads``.
    """

    def __init__(self, channels: int, activation: str = "relu", heads: int = 1) -> None:
        super().__init__(GATConv(channels, head_width(channels, heads), heads), activation)


class GAT(LayeredModel):
    r"""Graph attention network.

    .. math::
        \mathbf{h}_i^{l+1} = \sigma\Bigl(\mathbf{b}^l + \sum_{j\in\Gamma(i)\cup\{i\}}
        \alpha_{ij}\mathbf{W}^l\mathbf{h}_j^l\Bigr), \qquad
        \alpha_{ij} = \mathrm{softmax}_j\,\mathrm{LeakyReLU}\bigl(
        \mathbf{a}_1^\top\mathbf{W}^l\mathbf{h}_i^l + \mathbf{a}_2^\top\mathbf{W}^l\mathbf{h}_j^l
        \bigr)

    and so for each head; their outputs stand side by side.

    Args:
        in_channels, hidden_channels, out_channels, num_layers, level: see
            :class:`~eegnn.zoo.layered.LayeredModel`, as for ``**kwargs``.
        heads: number of attention heads; it divides ``hidden_channels``.
    """

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
            partial(GATStep, heads=heads),
            in_channels,
            hidden_channels,
            out_channels,
            num_layers,
            level,
            **kwargs,
        )
        self.config |= own
