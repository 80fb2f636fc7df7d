"""Edge features for layers that work on a list of edges."""

from __future__ import annotations

import torch
from torch import Tensor

from eegnn.graph import Adjacency
from eegnn.nn.activations import ACTIVATIONS
from eegnn.nn.steps import ConvStep


class EdgeStep(ConvStep):
    """A PyG convolution with edge features as a step, called as ``step(h, adj, edge_attr)``."""

    def forward(self, h: Tensor, adj: Adjacency, edge_attr: Tensor | None = None) -> Tensor:
        """Return the shape of ``h``; ``edge_attr`` is in the order of ``adj.edge_index``."""
        return ACTIVATIONS[self.activation](self.conv(h, adj.edge_index, edge_attr))


def edge_features_for(
    edge_dim: int | None, adj: Adjacency, edge_attr: Tensor | None
) -> Tensor | None:
    """Return :func:`edge_features`, which a model with ``edge_dim`` must be given."""
    if edge_attr is not None:
        return edge_features(adj, edge_attr)
    if edge_dim is not None:
        raise ValueError(f"edge_attr is needed: the model has edge_dim={edge_dim}")
    return None


def edge_features(adj: Adjacency, edge_attr: Tensor) -> Tensor:
    """Give each column of ``adj.edge_index`` its features.

    An edge that was listed in one direction has the same features in both; one that was listed in
    both keeps those of each direction. Columns that repeat an edge are averaged, as ``adj`` merged
    them, and self-loops count for nothing.

    Args:
        adj: the graph, not a selection of it.
        edge_attr: ``[E, d]``, a row for each column of the ``edge_index`` that ``adj`` was made
            from.

    Returns:
        ``[adj.num_edges, d]``.
    """
    columns = adj._source
    if columns is None:
        raise ValueError("edge features belong to the whole graph, not to a selection of it")
    source, target = columns.long()
    kept = source != target
    source, target, edge_attr = source[kept], target[kept], edge_attr[kept]
    n = adj.num_nodes
    known = adj.row * n + adj.col  # ascending, as CSR entries are
    along, count = _mean(torch.searchsorted(known, target * n + source), edge_attr, known.numel())
    against, _ = _mean(torch.searchsorted(known, source * n + target), edge_attr, known.numel())
    return torch.where(count.unsqueeze(-1) > 0, along, against)


def _mean(position: Tensor, value: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Mean of the values at each position, 0 where there is none, and how many there were."""
    total = value.new_zeros(size, value.size(-1)).index_add(0, position, value)
    count = torch.bincount(position, minlength=size)
    return total / count.clamp(min=1).to(value.dtype).unsqueeze(-1), count
