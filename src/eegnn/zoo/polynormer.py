"""Polynormer (Deng et al., 2024): gated local attention, then linear attention over all nodes."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn
from torch_geometric.nn import BatchNorm, GATConv
from torch_geometric.utils import add_self_loops

from eegnn import _check
from eegnn.graph import Adjacency
from eegnn.nn.dropout import Dropout
from eegnn.nn.fixed_depth import FixedDepthModel
from eegnn.zoo.gcn import GCNStep
from eegnn.zoo.layered import head_width
from eegnn.zoo.linear_attention import linear_attention


@dataclass(eq=False, repr=False)
class Polynormer(FixedDepthModel):
    r"""Polynomials of the node features of high degree, local ones first and then global ones.

    .. math::
        \mathbf{U}^l &= \mathrm{ReLU}(\mathrm{GAT}^l(\mathbf{H}^l) + \mathbf{H}^l\mathbf{W}^l
        + \mathbf{b}^l), \\
        \mathbf{H}^{l+1} &= (1-\beta^l)\odot\mathrm{LN}\bigl(\mathrm{ReLU}(\mathbf{H}^l
        \mathbf{W}_h^l + \mathbf{b}_h^l)\odot\mathbf{U}^l\bigr) + \beta^l\odot\mathbf{U}^l

    Then :class:`GlobalAttention` layers, which begin from
    :math:`\mathrm{LN}(\sum_{l\ge1}\mathbf{H}^l)`; until they are switched on, that sum is decoded.

    The authors train the local layers alone for the first ``local_epochs`` epochs. A training loop
    that calls :meth:`before_epoch` does so too; whether the global layers are on is saved with the
    weights.

    Args:
        num_layers: number of local layers.
        global_layers: number of global layers.
        local_epochs: epochs before the global layers are switched on.
        heads: attention heads, local and global; they divide ``hidden_channels``.
        local_attn: GAT in the local layers; otherwise GCN.
        beta: where :math:`\beta` starts, a learned number for each layer and channel; by default
            :math:`\beta = \mathrm{sigmoid}(b)` with :math:`b` learned from 0.
        conv_norm: ``"layer"``: normalise what a local layer is given; ``"batch"``: normalise
            :math:`\mathbf{U}` before its ReLU; or ``None``.
        conv_dropout, global_dropout: after each ReLU of local and of global layers.
    """

    num_layers: int = 7
    _: KW_ONLY
    global_layers: int = 2
    local_epochs: int = field(default=0, metadata={"at_least": 0})
    heads: int = 1
    local_attn: bool = True
    beta: float | None = None
    conv_norm: Literal["layer", "batch"] | None = None
    conv_dropout: float = 0.0
    global_dropout: float = 0.0

    former_names: ClassVar[dict[str, str]] = {"global_layers": "global_attention"}

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.beta is not None:
            _check.number("beta", self.beta, 0, 1)
        width = self.hidden_channels
        self.local_layers = nn.ModuleList(
            LocalLayer(
                width, self.heads, self.local_attn, self.beta, self.conv_norm, self.conv_dropout
            )
            for _ in range(self.num_layers)
        )
        self.global_norm = nn.LayerNorm(width)
        self.global_attention = nn.ModuleList(
            GlobalAttention(width, self.heads, self.beta) for _ in range(self.global_layers)
        )
        self.global_out = nn.Linear(width, width)
        self.global_drop = Dropout(self.global_dropout)
        self.global_on: Tensor  # whether the global layers are run
        self.register_buffer("global_on", torch.tensor(self.local_epochs == 0))

    def reset_parameters(self) -> None:
        """Draw all weights anew, and switch the global layers back."""
        super().reset_parameters()
        self.global_on.fill_(self.local_epochs == 0)

    def before_epoch(self, epoch: int) -> None:
        """Switch the global layers on once ``local_epochs`` epochs are over."""
        self.global_on.fill_(epoch > self.local_epochs)

    def run_layers(
        self, h: Tensor, adj: Adjacency, edge_attr: Tensor | None, num_layers: int
    ) -> Tensor:
        """Run the first ``num_layers`` local layers, then the global ones, if they are on."""
        if adj.num_nodes == 0:
            return h
        # The graph as the layer below takes it: GAT sees each node among its own neighbours.
        graph: Tensor | Adjacency = adj
        if self.local_attn:
            graph, _ = add_self_loops(adj.edge_index, num_nodes=adj.num_nodes)
        total = torch.zeros_like(h)
        for layer in self.local_layers[:num_layers]:
            h = layer(h, graph)
            total = total + h
        if not self.global_on:
            return total
        h = self.global_norm(total)
        for layer in self.global_attention:
            h = self.global_drop(self.global_out(layer(h, adj)).relu())
        return h


class LocalLayer(nn.Module):
    """One local layer; :class:`Polynormer` gives its equation and explains the arguments."""

    def __init__(
        self,
        channels: int,
        heads: int,
        local_attn: bool,
        beta: float | None,
        norm: Literal["layer", "batch"] | None,
        dropout: float,
    ) -> None:
        super().__init__()
        width = head_width(channels, heads)
        self.norm_in = nn.LayerNorm(channels) if norm == "layer" else None
        self.gate = nn.Linear(channels, channels)
        self.conv = (
            GATConv(channels, width, heads, add_self_loops=False, bias=False)
            if local_attn
            else GCNStep(channels, "identity")
        )
        self.lin = nn.Linear(channels, channels)
        self.norm_conv = BatchNorm(channels, allow_single_element=True) if norm == "batch" else None
        self.norm = nn.LayerNorm(channels)
        self.beta = Beta(channels, beta)
        self.dropout = Dropout(dropout)

    def forward(self, h: Tensor, graph: Tensor | Adjacency) -> Tensor:
        """Return the shape of ``h``; ``graph`` is what the convolution takes."""
        if self.norm_in is not None:
            h = self.norm_in(h)
        gate = self.gate(h).relu()
        u = self.conv(h, graph) + self.lin(h)
        if self.norm_conv is not None:
            u = self.norm_conv(u)
        u = self.dropout(u.relu())
        beta = self.beta()
        return (1 - beta) * self.norm(gate * u) + beta * u


class GlobalAttention(nn.Module):
    r"""Every node attends to all nodes of its graph, at a cost linear in their number.

    .. math::
        \mathrm{LN}\bigl(\mathbf{D}^{-1}\mathbf{S}(\mathbf{S}^\top\mathbf{V})\bigr) \odot
        (\mathbf{H}\mathbf{W}_h + \mathbf{b}_h + \beta), \qquad
        \mathbf{S} = \mathrm{sigmoid}(\mathbf{H}\mathbf{W}_k + \mathbf{b}_k), \quad
        \mathbf{D} = \mathrm{diag}\bigl(\mathbf{S}(\mathbf{S}^\top\mathbf{1})\bigr)

    head by head; :math:`\mathbf{S}` is query and key at once.
    """

    def __init__(self, channels: int, heads: int = 1, beta: float | None = None) -> None:
        super().__init__()
        self.heads = heads
        self.gate = nn.Linear(channels, channels)
        self.key = nn.Linear(channels, channels)
        self.value = nn.Linear(channels, channels)
        self.norm = nn.LayerNorm(channels)
        self.beta = Beta(channels, beta)

    def forward(self, h: Tensor, adj: Adjacency) -> Tensor:
        """Return the shape of ``h``."""
        shape = (h.size(0), self.heads, -1)
        key, value = self.key(h).sigmoid().view(shape), self.value(h).view(shape)
        total, weight = linear_attention(key, key, value, adj)
        return self.norm((total / weight).flatten(1)) * (self.gate(h) + self.beta())


class Beta(nn.Module):
    r"""The mixing weight :math:`\beta` of :class:`Polynormer`, a learned number a channel."""

    def __init__(self, channels: int, start: float | None) -> None:
        super().__init__()
        self.start = start
        self.value = nn.Parameter(torch.empty(channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set it to its first value."""
        nn.init.constant_(self.value, 0.0 if self.start is None else self.start)

    def forward(self) -> Tensor:
        """Return the coefficients ``[channels]``, between 0 and 1 unless they have a start."""
        return self.value.sigmoid() if self.start is None else self.value
