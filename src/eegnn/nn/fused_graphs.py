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

    Nobody reads the state of a graph that has left, so the scaled states are all that is kept.

    Args:
        kernels, h, adj, *given: as in :class:`~eegnn.nn.fused.FusedWalk`.
        mean: whether states are averaged over the nodes of a graph, rather than added.
    """

    def __init__(
        self, kernels: ModuleType, h: Tensor, adj: Adjacency, *given: Any, mean: bool
    ) -> None:
        super().__init__(kernels, adj.num_graphs, h, adj, *given)
        self.mean = mean
        self.ptr = adj.ptr.numpy()
        self.sizes = adj.ptr.diff().clamp(min=1).to(h.dtype).unsqueeze(-1)
        self.pooled = weighted_sum(h, adj)

    def _units(self) -> Tensor:
        return self.pooled / self.sizes if self.mean else self.pooled

    def _around(self, others: Array) -> tuple[Array, Array]:
        return others, others  # all 0: graphs have no neighbours

    def _narrow(self, steps: int, tau: Array) -> Array:
        graphs = np.flatnonzero(~self.left)
        if not self._pays(int(self.sizes.numpy()[graphs].sum())):
            return tau
        ptr, rows = np.empty(graphs.size + 1, self.ptr.dtype), np.empty(self.h.size(0), np.int64)
        given = (self.rowptr, self.col, self.scaled)
        made = tuple(torch.empty_like(t) for t in given)
        count, entries = self.kernels.select_graphs(
            graphs, self.ptr, *(t.numpy() for t in given), ptr, *(t.numpy() for t in made), rows
        )
        self.ptr, self.rowptr, self.col = ptr, made[0][: count + 1], made[1][:entries]
        self.h = self.scaled = made[2][:count]
        self._keep_constants(rows[:count])
        index = torch.from_numpy(graphs)
        self.pooled, self.sizes = self.pooled.index_select(0, index), self.sizes[index]
        self._keep(graphs)
        return tau[graphs]

    def _move(self, inner: Array, around: Array, tau: Array, noted: Array) -> None:
        scaled, pooled = self.scaled.numpy(), self.pooled.numpy()
        self.kernels.advance_graphs(
            inner.size, self.names, self.ptr, scaled, inner, around, self.scale, tau, noted, pooled
        )
