"""GCN, GraphSAGE and GAT as Luo, Shi and Wu (NeurIPS 2024) tuned them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch_geometric.nn import BatchNorm, GATConv, GCNConv, SAGEConv
from torch_geometric.utils import add_self_loops

from eegnn.graph import Adjacency
from eegnn.nn.dropout import Dropout
from eegnn.nn.encoders import Encoder
from eegnn.nn.fixed_depth import FixedDepthModel
from eegnn.nn.sas_conv import NormLayer
from eegnn.zoo.gcn import propagate_with_self_loops

NORMS: dict[str, Callable[[int], nn.Module]] = {
    "layer": nn.LayerNorm,
    "batch": partial(BatchNorm, allow_single_element=True),
}


@dataclass(eq=False, repr=False)
class TunedGNN(FixedDepthModel):
    r"""A classic GNN with what makes it a strong baseline: norms, dropout and linear residuals.

    .. math::
        \mathbf{H}^{l+1} = \mathrm{dropout}\bigl(\mathrm{ReLU}\bigl(\mathrm{norm}\bigl(
        \mathrm{conv}^l(\mathbf{H}^l) \;[{} + \mathbf{H}^l\mathbf{R}^l + \mathbf{r}^l]\bigr)\bigr)
        \bigr), \qquad \mathbf{H}^0 = \mathbf{X}

    The first convolution maps from the features: there is no encoder by default. Every node is
    among its own neighbours, for the mean of GraphSAGE too.

    Args:
        conv: ``"gcn"``, ``"sage"`` or ``"gat"`` (one head, without bias).
        residual: whether there are :math:`\mathbf{R}^l` and :math:`\mathbf{r}^l`.
        conv_norm: ``"layer"``, ``"batch"`` or ``None``.
        conv_dropout: in each layer, and after the linear encoder.
        linear_encoder: :math:`\mathbf{H}^0 = \mathbf{X}\mathbf{W} + \mathbf{b}`. Graphs without
            features always have it.
    """

    _: KW_ONLY
    conv: Literal["gcn", "sage", "gat"] = "gcn"
    residual: bool = False
    conv_norm: NormLayer | None = None
    conv_dropout: float = 0.0
    linear_encoder: bool = False

    decoder_bias = True

    def __post_init__(self) -> None:
        super().__post_init__()
        width = self.hidden_channels
        if self.linear_encoder or self.in_channels == 0:
            self.encoder = Encoder(self.in_channels, width, self.conv_dropout, relu=False)
            first = width
        else:
            self.encoder = NoEncoder(self.in_channels)
            first = self.in_channels
        self.layers = nn.ModuleList(
            TunedLayer(self.conv, channels, width, self.residual, self.conv_norm, self.conv_dropout)
            for channels in [first, *[width] * (self.num_layers - 1)]
        )

    def run_layers(
        self, h: Tensor, adj: Adjacency, edge_attr: Tensor | None, num_layers: int
    ) -> Tensor:
        """Apply one layer after the other."""
        for layer in self.layers[:num_layers]:
            h = layer(h, adj).to(h.dtype)  # under autocast it may be narrower
        return h


class NoEncoder(Encoder):
    """Initial states that are the features: an encoder without weights."""

    def __init__(self, in_channels: int) -> None:
        super().__init__(in_channels, 0)
        del self.weight, self.bias
        self.register_buffer("bias", torch.empty(0))  # has a type and a device

    def reset_parameters(self) -> None:
        """Do nothing: there are no weights."""

    def forward(self, x: Tensor) -> Tensor:
        """Return ``x``, ``[n, in_channels]``."""
        return x if x.layout == torch.strided else x.to_dense()


class TunedLayer(nn.Module):
    """One layer of :class:`TunedGNN`, which has the equation and explains the arguments."""

    def __init__(
        self,
        conv: str,
        in_channels: int,
        channels: int,
        residual: bool,
        norm: NormLayer | None,
        dropout: float,
    ) -> None:
        super().__init__()
        make, self.apply_conv = CONVS[conv]
        self.conv = make(in_channels, channels)
        self.residual = nn.Linear(in_channels, channels) if residual else None
        self.norm = None if norm is None else NORMS[norm](channels)
        self.dropout = Dropout(dropout)

    def forward(self, h: Tensor, adj: Adjacency) -> Tensor:
        """Return convolution, residual, norm, ReLU and dropout of states, ``[n, channels]``."""
        out = self.apply_conv(self.conv, h, adj)
        if self.residual is not None:
            out = out + self.residual(h)
        if self.norm is not None:
            out = self.norm(out)
        return self.dropout(out.relu())


def _gcn(conv: Any, h: Tensor, adj: Adjacency) -> Tensor:
    return propagate_with_self_loops(adj, conv.lin(h)) + conv.bias


def _sage(conv: Any, h: Tensor, adj: Adjacency) -> Tensor:
    mean = (adj.propagate(h, "sum") + h) / (adj.degree + 1).to(h.dtype).unsqueeze(-1)
    return conv.lin_l(mean) + conv.lin_r(h)


def _gat(conv: Any, h: Tensor, adj: Adjacency) -> Tensor:
    edge_index, _ = add_self_loops(adj.edge_index, num_nodes=adj.num_nodes)
    return conv(h, edge_index)


def _make_gat(in_channels: int, channels: int) -> GATConv:
    return GATConv(in_channels, channels, add_self_loops=False, bias=False)


#: PyG's layer of two widths, and how it is applied with each node among its own neighbours.
CONVS: dict[str, tuple[Callable[[int, int], nn.Module], Callable[..., Tensor]]] = {
    "gcn": (GCNConv, _gcn),
    "sage": (SAGEConv, _sage),
    "gat": (_make_gat, _gat),
}
