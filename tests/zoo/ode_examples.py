"""Graphs and small calculations that the tests of the graph neural ODEs share."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from eegnn.graph import Adjacency
from eegnn.nn.model import GraphModel
from tests.graphs import TRIANGLE_AND_TAIL, Matrix, Pairs, both_ways, features

#: A triangle with a tail and an isolated node; a star beside a path; no edges at all.
GRAPHS: list[tuple[int, Pairs]] = [
    (5, TRIANGLE_AND_TAIL),
    (8, [(0, 1), (0, 2), (0, 3), (0, 4), (5, 6), (6, 7)]),
    (3, []),
]
M = 4

Module = TypeVar("Module", bound=nn.Module)


def adjacency(n: int, pairs: Pairs) -> Adjacency:
    return Adjacency.from_edge_index(both_ways(pairs), n)


def states(n: int, m: int = M, seed: int = 0) -> Tensor:
    return torch.from_numpy(features(n, m, seed))


def array(tensor: Tensor) -> Matrix:
    return tensor.detach().numpy()


def lively(module: Module, seed: int = 0) -> Module:
    """The module in float64 with all numbers drawn anew, so that none of them is zero."""
    generator = torch.Generator().manual_seed(seed)
    module.double()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) / 2)
    return module


def encoded(model: GraphModel, x: Matrix) -> Matrix:
    return np.maximum(x @ array(model.encoder.weight).T + array(model.encoder.bias), 0)


def decoded(model: GraphModel, h: Matrix) -> Matrix:
    return h @ array(model.decoder.get_parameter("mlp.lins.0.weight")).T


def jacobian(function: object, at: Tensor) -> Tensor:
    assert callable(function)
    found = torch.autograd.functional.jacobian(function, at)
    assert isinstance(found, Tensor)
    return found
