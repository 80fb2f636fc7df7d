"""SGFormer (Wu et al., 2023): a GCN beside one layer of linear attention over all nodes."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from torch import Tensor, nn
from torch_geometric.nn import BatchNorm

from eegnn import _check
from eegnn.graph import Adjacency
from eegnn.nn.dropout import Dropout
from eegnn.nn.fixed_depth import FixedDepthModel
from eegnn.nn.pooling import POOLS, spread
from eegnn.zoo.gcn import GCNStep
from eegnn.zoo.linear_attention import linear_attention


@dataclass(eq=False, repr=False)
class SGFormer(FixedDepthModel):
    r"""Attention and convolution side by side, mixed before the decoder.

    .. math::
        \mathbf{Z}^{l+1} &= \mathrm{LN}\bigl(\tfrac12(
        \mathrm{attention}^l(\mathbf{Z}^l) + \mathbf{Z}^l)\bigr), \qquad
        \mathbf{G}^{l+1} = \mathrm{ReLU}\bigl(\mathrm{BN}(\mathbf{\tilde A}\mathbf{G}^l\mathbf{W}^l
        + \mathbf{b}^l)\bigr) \\
        \mathbf{H} &= \alpha\,\mathbf{G} + (1 - \alpha)\,\mathbf{Z}

    from :math:`\mathbf{Z}^0 = \mathbf{G}^0 = \mathbf{H}^0`, the encoder's states, with the
    symmetric normalisation with self-loops :math:`\mathbf{\tilde A}`; see
    :class:`SimpleAttention`. The last convolution has neither BN nor ReLU. In training, batch
    normalisation uses the statistics of the batch.

    Args:
        num_layers: number of convolutions.
        attention_layers: number of attention layers; ``max_layers`` does not limit them.
        heads: attention heads, each as wide as the model; their mean is taken.
        graph_weight: :math:`\alpha`.
        conv_dropout: after each layer but the last convolution.
    """

    num_layers: int = 3
    _: KW_ONLY
    attention_layers: int = 1
    heads: int = 1
    graph_weight: float = 0.5
    conv_dropout: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        _check.number("graph_weight", self.graph_weight, 0, 1)
        width, dropout = self.hidden_channels, self.conv_dropout
        self.attention = nn.ModuleList(
            AttentionLayer(width, self.heads, dropout) for _ in range(self.attention_layers)
        )
        self.convs = nn.ModuleList(GCNStep(width, "identity") for _ in range(self.num_layers))
        self.norms = nn.ModuleList(
            BatchNorm(width, allow_single_element=True) for _ in range(self.num_layers - 1)
        )
        self.conv_drop = Dropout(dropout)

    def run_layers(
        self, h: Tensor, adj: Adjacency, edge_attr: Tensor | None, num_layers: int
    ) -> Tensor:
        """Run the layers of both kinds and mix their states."""
        if adj.num_nodes == 0:
            return h
        z, g = h, h
        for layer in self.attention:
            z = layer(z, adj)
        for conv, norm in zip(self.convs[: num_layers - 1], self.norms, strict=False):
            g = self.conv_drop(norm(conv(g, adj)).relu())
        g = self.convs[num_layers - 1](g, adj)
        return self.graph_weight * g + (1 - self.graph_weight) * z


class SimpleAttention(nn.Module):
    r"""Every node attends to all nodes of its graph, at a cost linear in their number.

    .. math::
        \mathrm{attention}(\mathbf{Z}) = \mathbf{D}^{-1}\Bigl(\mathbf{V} + \tfrac1n
        \mathbf{\tilde Q}(\mathbf{\tilde K}^\top\mathbf{V})\Bigr), \qquad
        \mathbf{D} = \mathrm{diag}\Bigl(\mathbf{1} + \tfrac1n\mathbf{\tilde Q}
        (\mathbf{\tilde K}^\top\mathbf{1})\Bigr)

    with :math:`\mathbf{\tilde Q} = \mathbf{Q}/\|\mathbf{Q}\|_F`, likewise
    :math:`\mathbf{\tilde K}`, and the norm and :math:`n` those of the node's own graph. Each head
    is as wide as the model; their mean is returned.
    """

    def __init__(self, channels: int, heads: int = 1) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(channels, heads * channels)
        self.key = nn.Linear(channels, heads * channels)
        self.value = nn.Linear(channels, heads * channels)

    def forward(self, z: Tensor, adj: Adjacency) -> Tensor:
        """Return the states ``[n, channels]`` after attention over all nodes of each graph."""
        shape = (z.size(0), self.heads, z.size(1))
        query = _scaled(self.query(z).view(shape), adj)
        key = _scaled(self.key(z).view(shape), adj)
        value = self.value(z).view(shape)
        total, weight = linear_attention(query, key, value, adj)
        size = _over_graph(z.new_ones(z.size(0), 1), adj).unsqueeze(-1)
        # n + Σ_j q·k_j is at least n - √n: 0 only where a single node has q = -k.
        return ((size * value + total) / (size + weight).clamp(min=1e-6)).mean(dim=1)


class AttentionLayer(nn.Module):
    """Attention, mean with its input, layer normalisation, dropout."""

    def __init__(self, channels: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.attention = SimpleAttention(channels, heads)
        self.norm = nn.LayerNorm(channels)
        self.dropout = Dropout(dropout)

    def forward(self, z: Tensor, adj: Adjacency) -> Tensor:
        """Return the shape of ``z``."""
        return self.dropout(self.norm((self.attention(z, adj) + z) / 2))


def _over_graph(x: Tensor, adj: Adjacency) -> Tensor:
    """Sum over the nodes of a graph, given back to each of them: ``[n, d] → [n, d]``."""
    return spread(POOLS["add"](x, adj), adj)


def _scaled(x: Tensor, adj: Adjacency) -> Tensor:
    """Divide ``[n, heads, d]`` by its Frobenius norm over the graph."""
    squares = _over_graph(x.square().sum(dim=(1, 2)).unsqueeze(-1), adj)
    return x * squares.clamp(min=1e-24).rsqrt().unsqueeze(-1)
