"""SGFormer (Wu et al., 2023): a GCN beside one layer of linear attention over all nodes."""

from __future__ import annotations

from typing import Unpack

from torch import Tensor, nn
from torch_geometric.nn import BatchNorm

from eegnn import _check
from eegnn.graph import Adjacency
from eegnn.nn.dropout import Dropout
from eegnn.nn.exits import Exits
from eegnn.nn.model import GraphModel, Shared, arguments_in
from eegnn.nn.pooling import POOLS, spread
from eegnn.typing import Level
from eegnn.zoo.gcn import GCNStep
from eegnn.zoo.linear_attention import linear_attention


class SGFormer(GraphModel):
    r"""Attention and convolution side by side, mixed before the decoder.

    .. math::
        \mathbf{Z}^{l+1} &= \mathrm{ReLU}\bigl(\mathrm{LN}\bigl(\tfrac12(
        \mathrm{attention}^l(\mathbf{Z}^l) + \mathbf{Z}^l)\bigr)\bigr), \qquad
        \mathbf{G}^{l+1} = \mathrm{ReLU}\bigl(\mathrm{BN}(\mathbf{\tilde A}\mathbf{G}^l\mathbf{W}^l
        + \mathbf{b}^l)\bigr) + \mathbf{H}^0 \\
        \mathbf{H} &= \alpha\,\mathbf{G} + (1 - \alpha)\,\mathbf{Z}

    from :math:`\mathbf{Z}^0 = \mathbf{G}^0 = \mathbf{H}^0`, the encoder's states, with the
    symmetric normalisation with self-loops :math:`\mathbf{\tilde A}`; see
    :class:`SimpleAttention`. In training, batch normalisation uses the statistics of the batch.

    Args:
        in_channels, hidden_channels, out_channels, level: see
            :class:`~eegnn.nn.model.GraphModel`, as for ``**kwargs``.
        num_layers: number of convolutions.
        attention_layers: number of attention layers; those beyond ``max_layers`` are not run
            either.
        heads: attention heads, each as wide as the model; their mean is taken.
        graph_weight: :math:`\alpha`.
        conv_dropout: after each ReLU.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 3,
        level: Level = "node",
        *,
        attention_layers: int = 1,
        heads: int = 1,
        graph_weight: float = 0.5,
        conv_dropout: float = 0.0,
        **kwargs: Unpack[Shared],
    ) -> None:
        own = arguments_in(locals())
        super().__init__(in_channels, hidden_channels, out_channels, num_layers, level, **kwargs)
        self.config |= own
        _check.integer("attention_layers", attention_layers, at_least=1)
        _check.integer("heads", heads, at_least=1)
        self.graph_weight = _check.number("graph_weight", graph_weight, 0, 1)
        _check.number("conv_dropout", conv_dropout, 0, 1)
        self.attention = nn.ModuleList(
            AttentionLayer(hidden_channels, heads, conv_dropout) for _ in range(attention_layers)
        )
        self.convs = nn.ModuleList(
            ConvLayer(hidden_channels, conv_dropout) for _ in range(num_layers)
        )

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        for module in (self.encoder, *self.attention, *self.convs, self.decoder):
            module.reset_parameters()

    def evolve(
        self,
        h: Tensor,
        adj: Adjacency,
        edge_attr: Tensor | None = None,
        *,
        max_layers: int | None = None,
        exit_threshold: float | None = None,
        sample: bool | None = None,
    ) -> tuple[Tensor, Exits]:
        """Apply all layers of both kinds and decode; everyone leaves at the end."""
        limit = self.fixed_depth(max_layers, exit_threshold, sample)
        if adj.num_nodes:
            z, g = h, h
            for layer in self.attention[:limit]:
                z = layer(z, adj)
            for layer in self.convs[:limit]:
                g = layer(g, adj) + h
            h = self.graph_weight * g + (1 - self.graph_weight) * z
        units = h if self.level == "node" else POOLS[self.pool](h, adj)
        return self.decoder(units), Exits.all_at(limit, self.num_layers, units)


class SimpleAttention(nn.Module):
    r"""Every node attends to all nodes of its graph, at a cost linear in their number.

    .. math::
        \mathrm{attention}(\mathbf{Z}) = \mathbf{D}^{-1}\Bigl(\mathbf{V} + \tfrac1n
        \mathbf{\tilde Q}(\mathbf{\tilde K}^\top\mathbf{V})\Bigr), \qquad
        \mathbf{D} = \mathrm{diag}\Bigl(\mathbf{1} + \tfrac1n\mathbf{\tilde Q}
        (\mathbf{\tilde K}^\top\mathbf{1})\Bigr)

    with :math:`\mathbf{\tilde Q} = \mathbf{Q}/\|\mathbf{Q}\|_F`, likewise
    :math:`\mathbf{\tilde K}`, and the norm and :math:`n` those of the node's own graph.

    Args:
        channels: width, of each head too.
        heads: number of heads, whose mean is returned.
    """

    def __init__(self, channels: int, heads: int = 1) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(channels, heads * channels)
        self.key = nn.Linear(channels, heads * channels)
        self.value = nn.Linear(channels, heads * channels)

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        for module in (self.query, self.key, self.value):
            module.reset_parameters()

    def forward(self, z: Tensor, adj: Adjacency) -> Tensor:
        """Return ``[n, channels]``."""
        shape = (z.size(0), self.heads, z.size(1))
        query = _scaled(self.query(z).view(shape), adj)
        key = _scaled(self.key(z).view(shape), adj)
        value = self.value(z).view(shape)
        total, weight = linear_attention(query, key, value, adj)
        size = _over_graph(z.new_ones(z.size(0), 1), adj).unsqueeze(-1)
        # n + Σ_j q·k_j is at least n - √n: 0 only where a single node has q = -k.
        return ((size * value + total) / (size + weight).clamp(min=1e-6)).mean(dim=1)


class AttentionLayer(nn.Module):
    """Attention, mean with its input, layer normalisation, ReLU, dropout."""

    def __init__(self, channels: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.attention = SimpleAttention(channels, heads)
        self.norm = nn.LayerNorm(channels)
        self.dropout = Dropout(dropout)

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        self.attention.reset_parameters()
        self.norm.reset_parameters()

    def forward(self, z: Tensor, adj: Adjacency) -> Tensor:
        """Return the shape of ``z``."""
        return self.dropout(self.norm((self.attention(z, adj) + z) / 2).relu())


class ConvLayer(nn.Module):
    """Graph convolution, batch normalisation, ReLU, dropout."""

    def __init__(self, channels: int, dropout: float) -> None:
        super().__init__()
        self.conv = GCNStep(channels, "identity")
        self.norm = BatchNorm(channels, allow_single_element=True)
        self.dropout = Dropout(dropout)

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        self.conv.reset_parameters()
        self.norm.reset_parameters()

    def forward(self, g: Tensor, adj: Adjacency) -> Tensor:
        """Return the shape of ``g``."""
        return self.dropout(self.norm(self.conv(g, adj)).relu())


def _over_graph(x: Tensor, adj: Adjacency) -> Tensor:
    """Sum over the nodes of a graph, given back to each of them: ``[n, d] → [n, d]``."""
    return spread(POOLS["add"](x, adj), adj)


def _scaled(x: Tensor, adj: Adjacency) -> Tensor:
    """Divide ``[n, heads, d]`` by its Frobenius norm over the graph."""
    squares = _over_graph(x.square().sum(dim=(1, 2)).unsqueeze(-1), adj)
    return x * squares.clamp(min=1e-24).rsqrt().unsqueeze(-1)
