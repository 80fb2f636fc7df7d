"""Small graphs, and their matrices written entry by entry."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from hypothesis import settings
from hypothesis import strategies as st
from torch import Tensor

from eegnn.graph import Norm

Pairs = list[tuple[int, int]]
Matrix = npt.NDArray[np.float64]

NORMS: tuple[Norm, ...] = ("sym", "mean", "sum")
TRIANGLE_AND_TAIL: Pairs = [(0, 1), (1, 2), (2, 0), (2, 3)]

quick = settings(deadline=None, max_examples=30)


@st.composite
def graphs(draw: st.DrawFn, max_nodes: int = 9) -> tuple[int, Pairs]:
    """A number of nodes and undirected edges, each named once as (smaller, larger)."""
    n = draw(st.integers(0, max_nodes))
    pairs = [(u, v) for u in range(n) for v in range(u + 1, n)]
    edges = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    return n, edges


def both_ways(pairs: Pairs, dtype: torch.dtype = torch.int64) -> Tensor:
    directed = [*pairs, *((v, u) for u, v in pairs)]
    return torch.tensor(directed, dtype=dtype).view(-1, 2).T.contiguous()


def dense(n: int, pairs: Pairs, norm: Norm = "sum") -> Matrix:
    """The matrix that `propagate` multiplies by, written entry by entry."""
    a = np.zeros((n, n))
    for u, v in pairs:
        a[u, v] = a[v, u] = 1.0
    degree = [int(sum(row)) for row in a]
    for u in range(n):
        for v in range(n):
            if a[u, v] and norm == "sym":
                a[u, v] = 1 / np.sqrt(degree[u] * degree[v])
            elif a[u, v] and norm == "mean":
                a[u, v] = 1 / degree[u]
    return a


def features(n: int, d: int = 3, seed: int = 0) -> Matrix:
    return np.random.default_rng(seed).standard_normal((n, d))
