"""Evaluation of graphs by compiled kernels."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from eegnn.graph import Adjacency
from eegnn.nn.fused import Array, FusedWalk
from eegnn.nn.pooling import weighted_sum


class FusedGraphWalk(FusedWalk):
    """Algorithm 2 without gradients, as :class:`~eegnn.nn.graph_inference.GraphWalk`.

    Args:
        kernels, h, adj, *given: as in :class:`~eegnn.nn.fused.FusedWalk`.
        mean: whether states are averaged over the nodes of a graph, rather than added.
    """

    def __init__(
        self, kernels: ModuleType, h: Tensor, adj: Adjacency, *given: Any, mean: bool
    ) -> None:
        sizes = adj.ptr.diff()
        share = sizes.clamp(min=1).to(h.dtype).reciprocal() if mean else h.new_ones(sizes.size(0))
        pooled = weighted_sum(h, adj) * share.unsqueeze(-1)
        super().__init__(kernels, pooled, h, adj, *given)
        self.ptr, self.sizes = adj.ptr.numpy(), sizes.numpy()
        self.pooled, self.share = pooled.numpy(), share.numpy()
        self.nodes = np.arange(h.size(0))

    @property
    def rows(self) -> int:
        """How many nodes are computed."""
        return int(self.sizes[self.units].sum())

    def _states(self, units: Array) -> Tensor:
        return torch.from_numpy(self.pooled[units])

    def _narrow(self, steps: int) -> None:
        self.units = self.units[~self.books.left[self.units]]

    def _step_all(self, *given: Any) -> None:
        size, which = self.nodes.size * self.width, (self.units, self.ptr, self.nodes)
        self.kernels.step_graphs(size, *which, *given, self.pooled, self.share)
