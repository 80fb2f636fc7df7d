"""Edge features for layers that work on a list of edges."""

from __future__ import annotations

from torch import Tensor

from eegnn.graph import Adjacency


def edge_features_for(
    edge_dim: int | None, adj: Adjacency, edge_attr: Tensor | None
) -> Tensor | None:
    """Return ``adj.edge_features(edge_attr)``, which a model with ``edge_dim`` must be given."""
    if edge_attr is not None:
        return adj.edge_features(edge_attr)
    if edge_dim is not None:
        raise ValueError(f"edge_attr is needed: the model has edge_dim={edge_dim}")
    return None
