"""Small graphs and modules with weights to see, for the tests of the zoo."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from eegnn.graph import Adjacency
from tests.graphs import Matrix, Pairs, both_ways

Module = TypeVar("Module", bound=nn.Module)

#: A triangle with a tail, a pair and an isolated node; a single node; nodes without edges.
GRAPHS: list[tuple[int, Pairs]] = [
    (7, [(0, 1), (1, 2), (0, 2), (2, 3), (4, 5)]),
    (1, []),
    (3, []),
]


def adjacency(n: int, pairs: Pairs) -> Adjacency:
    return Adjacency.from_edge_index(both_ways(pairs), n)


def neighbours(n: int, pairs: Pairs) -> list[list[int]]:
    return [
        sorted({v for u, v in pairs if u == i} | {u for u, v in pairs if v == i}) for i in range(n)
    ]


def drawn(module: Module, seed: int = 0) -> Module:
    """In double precision, with all weights drawn anew: biases that start at 0 would hide."""
    generator = torch.Generator().manual_seed(seed)
    module = module.double()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.normal_(0, 0.5, generator=generator)
    return module


def states(n: int, channels: int = 4, seed: int = 1) -> Tensor:
    return torch.from_numpy(np.random.default_rng(seed).standard_normal((n, channels)))


def array(value: object) -> Matrix:
    assert isinstance(value, Tensor)
    return value.detach().numpy()
