"""Graphs and numbers for the kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from eegnn import Adjacency
from tests.graphs import both_ways

kernels: Any = pytest.importorskip("eegnn.nn.kernels")
RNG = np.random.default_rng(0)
WIDTHS = [5, 16, 33, 70]


def random_edge_index(n: int, pairs: int, seed: int = 0) -> torch.Tensor:
    drawn = np.random.default_rng(seed).integers(0, n, (pairs, 2)).tolist()
    return both_ways(sorted({(min(u, v), max(u, v)) for u, v in drawn if u != v}))


def array(*shape: int, positive: bool = False) -> np.ndarray[Any, Any]:
    draw = RNG.uniform(0.1, 1, shape) if positive else RNG.normal(size=shape)
    return draw.astype(np.float32)


def leaf(a: Any) -> torch.Tensor:
    return torch.tensor(a, dtype=torch.float64, requires_grad=True)


def panels(weight: Any) -> Any:
    return kernels.panels_of(torch.from_numpy(weight))


def structure(adj: Adjacency, edge: np.ndarray[Any, Any]) -> Any:
    scale = adj.scale(torch.float32)
    arrays = (adj.rowptr, adj.col, scale, scale.reciprocal())
    return kernels.Structure(*(t.numpy() for t in arrays), edge)
