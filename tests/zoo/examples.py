"""Small graphs, modules with random weights, and calculations by hand for the tests of the zoo."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from eegnn.graph import Adjacency
from eegnn.nn.model import GraphModel
from tests.graphs import Matrix, Pairs, both_ways, dense, features

Module = TypeVar("Module", bound=nn.Module)

#: A triangle with a tail, a pair and an isolated node; a star beside a path; nodes without edges;
#: a single node.
GRAPHS: list[tuple[int, Pairs]] = [
    (7, [(0, 1), (1, 2), (0, 2), (2, 3), (4, 5)]),
    (8, [(0, 1), (0, 2), (0, 3), (0, 4), (5, 6), (6, 7)]),
    (3, []),
    (1, []),
]
#: Width of states.
M = 4


def adjacency(n: int, pairs: Pairs) -> Adjacency:
    return Adjacency.from_edge_index(both_ways(pairs), n)


def neighbours(n: int, pairs: Pairs) -> list[list[int]]:
    return [
        sorted({v for u, v in pairs if u == i} | {u for u, v in pairs if v == i}) for i in range(n)
    ]


def drawn(module: Module, seed: int = 0) -> Module:
    """In double precision, with all weights drawn anew: those that start at 0 would hide."""
    generator = torch.Generator().manual_seed(seed)
    module = module.double()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.normal_(0, 0.5, generator=generator)
    return module


def ready(model: GraphModel, seed: int = 0) -> Any:
    """With drawn weights and statistics, in double precision, in evaluation mode."""
    model = drawn(model, seed).eval()
    generator = torch.Generator().manual_seed(seed)
    for module in model.modules():
        if isinstance(module, nn.BatchNorm1d):
            assert module.running_mean is not None
            assert module.running_var is not None
            module.running_mean.normal_(generator=generator)
            module.running_var.uniform_(0.5, 2.0, generator=generator)
    return model


def states(n: int, channels: int = M, seed: int = 1) -> Tensor:
    return torch.from_numpy(np.random.default_rng(seed).standard_normal((n, channels)))


def array(value: object) -> Matrix:
    assert isinstance(value, Tensor)
    return value.detach().numpy()


def encoded(model: GraphModel, x: Matrix) -> Matrix:
    return np.maximum(x @ array(model.encoder.weight).T + array(model.encoder.bias), 0)


def decoded(model: GraphModel, h: Matrix) -> Matrix:
    return h @ array(model.decoder.get_parameter("mlp.lins.0.weight")).T


def check_states(
    model: Any, by_hand: Callable[[Any, Matrix, int, Pairs], Matrix], n: int, pairs: Pairs
) -> None:
    """The model decodes the states that `by_hand` makes of the encoder's."""
    x = features(n)
    expected = decoded(model, by_hand(model, encoded(model, x), n, pairs))
    found = model(torch.from_numpy(x), adjacency(n, pairs))
    np.testing.assert_allclose(array(found), expected, atol=1e-10)


def gcn_matrix(n: int, pairs: Pairs) -> Matrix:
    """D^-1/2 (A + I) D^-1/2 with the degrees of A + I."""
    a = dense(n, pairs) + np.eye(n)
    degree = a.sum(axis=1)
    return a / np.sqrt(np.outer(degree, degree))


def gcn_by_hand(conv: Any, h: Matrix, n: int, pairs: Pairs) -> Matrix:
    return gcn_matrix(n, pairs) @ h @ array(conv.lin.weight).T + array(conv.bias)


def gat_by_hand(conv: Any, h: Matrix, n: int, pairs: Pairs) -> Matrix:
    """GAT without bias, each node among its own neighbours."""
    z = (h @ array(conv.lin.weight).T).reshape(n, conv.heads, -1)
    own, other = array(conv.att_dst)[0], array(conv.att_src)[0]
    out = np.zeros_like(z)
    for i, around in enumerate(neighbours(n, pairs)):
        group = [*around, i]
        for k in range(conv.heads):
            score = np.array([own[k] @ z[i, k] + other[k] @ z[j, k] for j in group])
            share = np.exp(np.where(score > 0, score, 0.2 * score))
            out[i, k] = share @ z[group, k] / share.sum()
    return out.reshape(n, -1)


def linear(module: Any, x: Matrix) -> Matrix:
    return x @ array(module.weight).T + array(module.bias)


def layer_norm(module: Any, x: Matrix) -> Matrix:
    x = (x - x.mean(axis=1, keepdims=True)) / np.sqrt(x.var(axis=1, keepdims=True) + 1e-5)
    return x * array(module.weight) + array(module.bias)


def batch_norm(module: Any, x: Matrix) -> Matrix:
    x = (x - array(module.running_mean)) / np.sqrt(array(module.running_var) + 1e-5)
    return x * array(module.weight) + array(module.bias)


def jacobian(function: object, at: Tensor) -> Tensor:
    assert callable(function)
    found = torch.autograd.functional.jacobian(function, at)
    assert isinstance(found, Tensor)
    return found
