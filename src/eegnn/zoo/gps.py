"""GPS (Rampášek et al., 2022), from PyG's layer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch_geometric.nn import GPSConv

from eegnn.graph import Adjacency
from eegnn.nn.fixed_depth import FixedDepthModel
from eegnn.nn.sas_conv import NormLayer
from eegnn.zoo.gatedgcn import GatedGCNStep
from eegnn.zoo.gcn import GCNStep
from eegnn.zoo.gine import GINEStep
from eegnn.zoo.layered import edge_features_for, head_width

#: Local layers; all but GCN take edge features.
CONVS: dict[str, Callable[..., nn.Module]] = {
    "gatedgcn": GatedGCNStep,
    "gine": GINEStep,
    "gcn": GCNStep,
}
#: PyG's names of the normalisations, and their arguments.
NORMS: dict[str, tuple[str, dict[str, Any]]] = {
    "batch": ("batch_norm", {"allow_single_element": True}),
    "layer": ("layer_norm", {}),
}


@dataclass(eq=False, repr=False)
class GPS(FixedDepthModel):
    r"""Message passing and attention over all nodes of a graph in each layer.

    .. math::
        \mathbf{M} &= \mathrm{norm}(\mathbf{H}^l + \mathrm{conv}^l(\mathbf{H}^l)), \qquad
        \mathbf{T} = \mathrm{norm}(\mathbf{H}^l + \mathrm{attention}^l(\mathbf{H}^l)), \\
        \mathbf{H}^{l+1} &= \mathrm{norm}\bigl(\mathbf{M} + \mathbf{T} +
        \mathrm{MLP}^l(\mathbf{M} + \mathbf{T})\bigr)

    Attention is quadratic in the nodes of a graph. In training, batch normalisation uses the
    statistics of the batch.

    Args:
        conv: the local layer, ``"gatedgcn"`` or ``"gine"``, or ``"gcn"``, which takes no edge
            features.
        conv_norm: ``"batch"``, or ``"layer"`` for PyG's ``LayerNorm``, one mean and one variance
            for all entries of a graph.
        heads: attention heads; they divide ``hidden_channels``.
        conv_dropout: of what a layer computes, before it is added to its input.
        attn_dropout: of the attention weights. It needs them all at once, ``[n, n]`` for a head.
    """

    _: KW_ONLY
    conv: Literal["gatedgcn", "gine", "gcn"] = "gatedgcn"
    conv_norm: NormLayer = "batch"
    heads: int = 1
    conv_dropout: float = 0.0
    attn_dropout: float = 0.0

    uses_edges = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.conv == "gcn" and self.edge_dim is not None:
            raise ValueError('GPS takes no edge features with conv="gcn": edge_dim must be None')
        edges = () if self.conv == "gcn" else (self.edge_dim,)
        head_width(self.hidden_channels, self.heads)
        self.layers = nn.ModuleList(
            GPSLayer(
                CONVS[self.conv](self.hidden_channels, "identity", *edges),
                self.hidden_channels,
                self.heads,
                self.conv_norm,
                self.conv_dropout,
                self.attn_dropout,
            )
            for _ in range(self.num_layers)
        )

    def run_layers(
        self, h: Tensor, adj: Adjacency, edge_attr: Tensor | None, num_layers: int
    ) -> Tensor:
        """Apply one layer after the other; a graph without nodes has nothing to normalise."""
        edge_attr = edge_features_for(self.edge_dim, adj, edge_attr)
        for layer in self.layers[: num_layers if adj.num_nodes else 0]:
            h = layer(h, adj, edge_attr)
        return h


class GPSLayer(nn.Module):
    """PyG's ``GPSConv`` on an :class:`~eegnn.Adjacency`; ``conv`` is the local layer."""

    def __init__(
        self,
        conv: nn.Module,
        channels: int,
        heads: int,
        norm: NormLayer,
        dropout: float,
        attn_dropout: float,
    ) -> None:
        super().__init__()
        name, options = NORMS[norm]
        self.gps = GPSConv(channels, conv, heads, dropout, norm=name, norm_kwargs=options)
        self.gps.attn = LeanAttention(channels, heads, attn_dropout, batch_first=True)

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        self.gps.attn.out_proj.reset_parameters()  # which PyTorch's own reset leaves out
        self.gps.reset_parameters()

    def forward(self, h: Tensor, adj: Adjacency, edge_attr: Tensor | None = None) -> Tensor:
        """Return the shape of ``h``; ``edge_attr`` is in the order of ``adj.edge_index``."""
        edges = {} if edge_attr is None else {"edge_attr": edge_attr}
        batch = adj.batch
        if batch is None and self.gps.norm_with_batch:
            # PyG's LayerNorm places its epsilon elsewhere where there is no batch.
            batch = adj.degree.new_zeros(adj.num_nodes)
        return self.gps(h, adj, batch, **edges).to(h.dtype)


class LeanAttention(nn.MultiheadAttention):
    """PyTorch's attention without its shortcut for inference.

    The shortcut makes the whole ``[heads, n, n]`` matrix, which training does not: 770 MB instead
    of 45 MB for 5,000 nodes and 4 heads, and no faster.
    """

    def forward(self, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor | None]:
        """Call :class:`torch.nn.MultiheadAttention` with its shortcut turned off."""
        enabled = torch.backends.mha.get_fastpath_enabled()
        torch.backends.mha.set_fastpath_enabled(False)
        try:
            return super().forward(*args, **kwargs)
        finally:
            torch.backends.mha.set_fastpath_enabled(enabled)
