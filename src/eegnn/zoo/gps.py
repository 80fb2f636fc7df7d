"""GPS (Rampášek et al., 2022), from PyG's layer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Unpack

import torch
from torch import Tensor, nn
from torch_geometric.nn import GPSConv

from eegnn import _check
from eegnn.graph import Adjacency
from eegnn.nn.exits import Exits
from eegnn.nn.model import GraphModel, Shared, arguments_in
from eegnn.nn.pooling import POOLS
from eegnn.typing import Level
from eegnn.zoo.edges import edge_features
from eegnn.zoo.gatedgcn import GatedGCNStep
from eegnn.zoo.gine import GINEStep
from eegnn.zoo.layered import head_width

#: Local layers that take edge features.
CONVS: dict[str, Callable[..., nn.Module]] = {"gatedgcn": GatedGCNStep, "gine": GINEStep}


class GPS(GraphModel):
    r"""Message passing and attention over all nodes of a graph in each layer.

    .. math::
        \mathbf{M} &= \mathrm{BN}(\mathbf{H}^l + \mathrm{conv}^l(\mathbf{H}^l)), \qquad
        \mathbf{T} = \mathrm{BN}(\mathbf{H}^l + \mathrm{attention}^l(\mathbf{H}^l)), \\
        \mathbf{H}^{l+1} &= \mathrm{BN}\bigl(\mathbf{M} + \mathbf{T} +
        \mathrm{MLP}^l(\mathbf{M} + \mathbf{T})\bigr)

    Attention is quadratic in the nodes of a graph. In training, batch normalisation uses the
    statistics of the batch.

    Args:
        in_channels, hidden_channels, out_channels, num_layers, level: see
            :class:`~eegnn.nn.model.GraphModel`, as for ``**kwargs``, among them ``edge_dim``.
        conv: the local layer, ``"gatedgcn"`` or ``"gine"``.
        heads: attention heads; they divide ``hidden_channels``.
        conv_dropout: of what a layer computes, before it is added to its input.
        attn_dropout: of the attention weights. It needs them all at once, ``[n, n]`` for a head.
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
        conv: Literal["gatedgcn", "gine"] = "gatedgcn",
        heads: int = 1,
        conv_dropout: float = 0.0,
        attn_dropout: float = 0.0,
        **kwargs: Unpack[Shared],
    ) -> None:
        own = arguments_in(locals())
        super().__init__(in_channels, hidden_channels, out_channels, num_layers, level, **kwargs)
        self.config |= own
        if self.edge_dim is not None:
            _check.integer("edge_dim", self.edge_dim, at_least=1)
        _check.choice("conv", conv, tuple(CONVS))
        _check.number("conv_dropout", conv_dropout, 0, 1)
        _check.number("attn_dropout", attn_dropout, 0, 1)
        head_width(hidden_channels, heads)
        self.layers = nn.ModuleList(
            GPSLayer(
                CONVS[conv](hidden_channels, "identity", self.edge_dim),
                hidden_channels,
                heads,
                conv_dropout,
                attn_dropout,
            )
            for _ in range(num_layers)
        )

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        for module in (self.encoder, *self.layers, self.decoder):
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
        """Apply all layers and decode; everyone leaves at the end."""
        limit = self.fixed_depth(max_layers, exit_threshold, sample)
        if edge_attr is not None:
            edge_attr = edge_features(adj, edge_attr)
        elif self.edge_dim is not None:
            raise ValueError(f"edge_attr is needed: the model has edge_dim={self.edge_dim}")
        for layer in self.layers[: limit if adj.num_nodes else 0]:
            h = layer(h, adj, edge_attr)
        units = h if self.level == "node" else POOLS[self.pool](h, adj)
        return self.decoder(units), Exits.all_at(limit, self.num_layers, units)


class GPSLayer(nn.Module):
    """PyG's ``GPSConv`` on an :class:`~eegnn.Adjacency`.

    Args:
        conv: the local layer, called as ``conv(h, adj, edge_attr=…)``.
        channels: width.
        heads: attention heads.
        dropout, attn_dropout: see :class:`GPS`.
    """

    def __init__(
        self, conv: nn.Module, channels: int, heads: int, dropout: float, attn_dropout: float
    ) -> None:
        super().__init__()
        self.gps = GPSConv(
            channels, conv, heads, dropout, norm_kwargs={"allow_single_element": True}
        )
        self.gps.attn = LeanAttention(channels, heads, attn_dropout, batch_first=True)

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        self.gps.attn.out_proj.reset_parameters()  # which PyTorch's own reset leaves out
        self.gps.reset_parameters()

    def forward(self, h: Tensor, adj: Adjacency, edge_attr: Tensor | None = None) -> Tensor:
        """Return the shape of ``h``; ``edge_attr`` is in the order of ``adj.edge_index``."""
        return self.gps(h, adj, adj.batch, edge_attr=edge_attr).to(h.dtype)


class LeanAttention(nn.MultiheadAttention):
    """PyTorch's attention without its shortcut for inference.

    The shortcut makes the whole ``[heads, n, n]`` matrix, which training does not: 770 MB instead
    of 45 MB for 5,000 nodes and 4 heads, and no faster.
    """

    def forward(self, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor | None]:
        """As :class:`torch.nn.MultiheadAttention`."""
        enabled = torch.backends.mha.get_fastpath_enabled()
        torch.backends.mha.set_fastpath_enabled(False)
        try:
            return super().forward(*args, **kwargs)
        finally:
            torch.backends.mha.set_fastpath_enabled(enabled)
