"""GAT-sep and GT-sep (Platonov et al., ICLR 2023): a node's own state beside its neighbours'."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.utils import scatter, softmax

from eegnn.graph import Adjacency
from eegnn.nn.dropout import Dropout
from eegnn.nn.encoders import Encoder
from eegnn.nn.fixed_depth import FixedDepthModel
from eegnn.zoo.layered import head_width


@dataclass(eq=False, repr=False)
class SeparatedGNN(FixedDepthModel):
    r"""Attention over neighbours without the node itself, whose state is concatenated.

    .. math::
        \mathbf{H} \leftarrow \mathbf{H} + \mathrm{FFN}\bigl([\mathbf{Z} \,\|\,
        \mathrm{attention}(\mathbf{Z})]\bigr), \qquad \mathbf{Z} = \mathrm{LN}(\mathbf{H})
        \mathbf{W} + \mathbf{b}

    for ``"gat"``, with two linear layers and a GELU in FFN. A layer of ``"gt"`` has two parts,

    .. math::
        \mathbf{H} \leftarrow \mathbf{H} + [\mathbf{Z} \,\|\, \mathrm{attention}(\mathbf{Z})]
        \mathbf{W} + \mathbf{b}, \quad \mathbf{Z} = \mathrm{LN}(\mathbf{H}), \qquad
        \mathbf{H} \leftarrow \mathbf{H} + \mathrm{FFN}(\mathrm{LN}(\mathbf{H}))

    from :math:`\mathbf{H}^0 = \mathrm{GELU}(\mathbf{X}\mathbf{W} + \mathbf{b})`, with a last
    layer normalisation before the decoder.

    Args:
        attention: ``"gat"``, see :class:`GATAttention`, or ``"gt"``, see :class:`DotAttention`.
        heads: attention heads; they divide ``hidden_channels``.
        conv_dropout: in the encoder and after each linear layer of the layers.
    """

    num_layers: int = 5
    _: KW_ONLY
    attention: Literal["gat", "gt"] = "gat"
    heads: int = 8
    conv_dropout: float = 0.0

    decoder_bias = True

    def __post_init__(self) -> None:
        super().__post_init__()
        width, dropout = self.hidden_channels, self.conv_dropout
        head_width(width, self.heads)
        layer = GATSepLayer if self.attention == "gat" else GTSepLayer
        self.encoder = GELUEncoder(self.in_channels, width, dropout, relu=False)
        self.layers = nn.ModuleList(
            layer(width, self.heads, dropout) for _ in range(self.num_layers)
        )
        if isinstance(self.decoder.norm, nn.Identity):
            self.decoder.norm = nn.LayerNorm(width)

    def run_layers(
        self, h: Tensor, adj: Adjacency, edge_attr: Tensor | None, num_layers: int
    ) -> Tensor:
        """Apply one layer after the other."""
        for layer in self.layers[:num_layers]:
            h = layer(h, adj).to(h.dtype)
        return h


class GELUEncoder(Encoder):
    """A linear layer, dropout, GELU."""

    def forward(self, x: Tensor) -> Tensor:
        """Return the initial states, ``[n, out_channels]``."""
        return F.gelu(super().forward(x))


class GATSepLayer(nn.Module):
    """A layer of GAT-sep."""

    def __init__(self, channels: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(channels)
        self.lin = nn.Linear(channels, channels)
        self.attention = GATAttention(channels, heads)
        self.ffn = _ffn(2 * channels, channels, dropout)

    def forward(self, h: Tensor, adj: Adjacency) -> Tensor:
        """Return the shape of ``h``."""
        z = self.lin(self.norm(h))
        return h + self.ffn(torch.cat([z, self.attention(z, adj)], dim=1))


class GTSepLayer(nn.Module):
    """A layer of GT-sep."""

    def __init__(self, channels: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(channels)
        self.attention = DotAttention(channels, heads)
        self.lin = nn.Linear(2 * channels, channels)
        self.dropout = Dropout(dropout)
        self.ffn = nn.Sequential(nn.LayerNorm(channels), *_ffn(channels, channels, dropout))

    def forward(self, h: Tensor, adj: Adjacency) -> Tensor:
        """Return the shape of ``h``."""
        z = self.norm(h)
        h = h + self.dropout(self.lin(torch.cat([z, self.attention(z, adj)], dim=1)))
        return h + self.ffn(h)


class GATAttention(nn.Module):
    r""":math:`\sum_{j\in\Gamma(i)}\alpha_{ij}\mathbf{z}_j` in each head, with
    :math:`\alpha_{ij} = \mathrm{softmax}_j\,\mathrm{LeakyReLU}_{0.2}(\mathbf{a}_1^\top\mathbf{z}_j
    + c + \mathbf{a}_2^\top\mathbf{z}_i)` of whole states.
    """

    def __init__(self, channels: int, heads: int) -> None:
        super().__init__()
        self.neighbour = nn.Linear(channels, heads)
        self.own = nn.Linear(channels, heads, bias=False)

    def forward(self, z: Tensor, adj: Adjacency) -> Tensor:
        """Return the shape of ``z``."""
        source, target = adj.edge_index
        scores = F.leaky_relu(self.neighbour(z)[source] + self.own(z)[target], 0.2)
        return _attend(scores, z, adj)


class DotAttention(nn.Module):
    r""":math:`\sum_{j\in\Gamma(i)}\alpha_{ij}\mathbf{v}_j` in each head, with
    :math:`\alpha_{ij} = \mathrm{softmax}_j\,\mathbf{q}_i^\top\mathbf{k}_j/\sqrt{d}`.
    """

    def __init__(self, channels: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(channels, channels)
        self.key = nn.Linear(channels, channels)
        self.value = nn.Linear(channels, channels)

    def forward(self, z: Tensor, adj: Adjacency) -> Tensor:
        """Return the shape of ``z``."""
        source, target = adj.edge_index
        shape = (z.size(0), self.heads, z.size(1) // self.heads)
        query, key = self.query(z).view(shape), self.key(z).view(shape)
        scores = (query[target] * key[source]).sum(dim=-1) / math.sqrt(shape[-1])
        return _attend(scores, self.value(z), adj)


def _attend(scores: Tensor, values: Tensor, adj: Adjacency) -> Tensor:
    """Average the values ``[n, m']`` of neighbours by the softmax of scores ``[E, heads]``."""
    source, target = adj.edge_index
    n, heads = values.size(0), scores.size(1)
    share = softmax(scores, target, num_nodes=n).unsqueeze(-1)
    messages = share * values.view(n, heads, values.size(1) // heads)[source]
    return scatter(messages, target, dim=0, dim_size=n).view(values.shape)


def _ffn(in_channels: int, channels: int, dropout: float) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(in_channels, channels),
        Dropout(dropout),
        nn.GELU(),
        nn.Linear(channels, channels),
        Dropout(dropout),
    )
