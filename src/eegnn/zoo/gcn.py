"""GCN (Kipf and Welling, 2017), from PyG's layers."""

from __future__ import annotations

from typing import Unpack

import torch
from torch import Tensor, nn
from torch_geometric.nn import GCNConv

from eegnn import _check
from eegnn.graph import Adjacency
from eegnn.nn.early_exit import Level
from eegnn.nn.exits import Exits
from eegnn.nn.model import GraphModel, Shared, arguments_in
from eegnn.nn.pooling import POOLS


class GCN(GraphModel):
    r"""Graph convolutional network without dropout or normalisation between its layers.

    .. math::
        \mathbf{H}^{l+1} = \mathrm{ReLU}\bigl(\tilde{\mathbf D}^{-1/2}\tilde{\mathbf A}
        \tilde{\mathbf D}^{-1/2}\mathbf{H}^l\mathbf{W}^l + \mathbf{b}^l\bigr)
        \;[{} + \mathbf{H}^l]

    with self-loops in :math:`\tilde{\mathbf A}`.

    Args:
        in_channels, hidden_channels, out_channels, num_layers, level: see
            :class:`~eegnn.nn.model.GraphModel`, as for ``**kwargs``.
        residual: add the input of a layer to its output.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 10,
        level: Level = "node",
        *,
        residual: bool = False,
        **kwargs: Unpack[Shared],
    ) -> None:
        own = arguments_in(locals())
        super().__init__(in_channels, hidden_channels, out_channels, num_layers, level, **kwargs)
        self.config |= own
        self.residual = _check.boolean("residual", residual)
        self.convs = nn.ModuleList(
            GCNConv(hidden_channels, hidden_channels, add_self_loops=False)  # they are in already
            for _ in range(num_layers)
        )

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        for module in (self.encoder, *self.convs, self.decoder):
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
        matrix = _with_self_loops(adj, h.dtype)
        for conv in self.convs[:limit]:
            out = conv(h, matrix).relu()
            h = h + out if self.residual else out
        units = h if self.level == "node" else POOLS[self.pool](h, adj)
        return self.decoder(units), Exits.all_at(limit, self.num_layers, units)


def _with_self_loops(adj: Adjacency, dtype: torch.dtype) -> Tensor:
    """A + I as CSR: PyG's layer is 30 times faster with it than with an edge list on a CPU."""
    n = adj.num_nodes
    row = torch.cat([adj.row, torch.arange(n, device=adj.row.device)])
    col = torch.cat([adj.col.long(), torch.arange(n, device=adj.row.device)])
    value = torch.ones(row.numel(), dtype=dtype, device=row.device)
    return torch.sparse_coo_tensor(torch.stack([row, col]), value, (n, n)).to_sparse_csr()
