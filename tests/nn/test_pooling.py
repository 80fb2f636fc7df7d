from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from eegnn import Adjacency
from eegnn.nn.pooling import POOLS, pooled_channels, spread

EMPTY = torch.zeros(2, 0, dtype=torch.int64)


def adjacency(batch: list[int] | None, n: int) -> Adjacency:
    tensor = None if batch is None else torch.tensor(batch, dtype=torch.int64)
    return Adjacency.from_edge_index(EMPTY, n, tensor)


def states(n: int) -> Tensor:
    rng = np.random.default_rng(0)
    return torch.from_numpy(rng.standard_normal((n, 3)) - 2.0)  # mostly negative: max ≠ 0


def concat(graph: NDArray[np.float64], axis: int) -> NDArray[np.float64]:
    return np.concatenate([reduce(graph, axis=axis) for reduce in (np.sum, np.max, np.mean)])


@pytest.mark.parametrize(
    ("name", "reduce"), [("mean", np.mean), ("add", np.sum), ("max", np.max), ("concat", concat)]
)
@pytest.mark.parametrize("batch", [None, [0, 0, 0, 0], [0, 0, 1, 2], [0, 1, 1, 1]])
def test_each_graph_is_reduced_alone(name: str, reduce: np.ufunc, batch: list[int] | None) -> None:
    h = states(4)
    rows = np.array(batch or [0] * 4)
    graphs = [h.numpy()[rows == g] for g in range(rows.max() + 1)]
    expected = np.stack([reduce(graph, axis=0) for graph in graphs])
    np.testing.assert_allclose(POOLS[name](h, adjacency(batch, 4)).numpy(), expected, rtol=1e-14)


@pytest.mark.parametrize("name", list(POOLS))
def test_a_graph_without_nodes_gets_zeros(name: str) -> None:
    out = POOLS[name](states(3), adjacency([0, 0, 2], 3))
    assert out.shape == (3, pooled_channels(name, 3))
    assert (out[1] == 0).all()
    assert (out[0] != 0).all()


@pytest.mark.parametrize("name", list(POOLS))
def test_without_any_node_there_is_one_graph_or_none(name: str) -> None:
    nothing = torch.zeros(0, 3)
    zeros = torch.zeros(1, pooled_channels(name, 3))
    assert torch.equal(POOLS[name](nothing, adjacency(None, 0)), zeros)
    assert POOLS[name](nothing, adjacency([], 0)).shape == (0, zeros.size(1))


@pytest.mark.parametrize("name", list(POOLS))
def test_gradients_are_right(name: str) -> None:
    adj = adjacency([0, 0, 1, 1], 4)
    h = states(4).requires_grad_()
    assert torch.autograd.gradcheck(lambda z: POOLS[name](z, adj), (h,))


@pytest.mark.parametrize("name", list(POOLS))
@pytest.mark.parametrize("batch", [None, [0, 0, 0, 0], [0, 0, 2, 2], [1, 1, 1, 1]])
def test_evaluation_pools_as_training_does(name: str, batch: list[int] | None) -> None:
    h, adj = states(4).float(), adjacency(batch, 4)
    trained = POOLS[name](h.clone().requires_grad_(), adj)
    assert trained.requires_grad
    torch.testing.assert_close(POOLS[name](h, adj), trained.detach())


@pytest.mark.parametrize("shape", [(3,), (3, 2)])
def test_spreading_gives_each_node_the_value_of_its_graph(shape: tuple[int, ...]) -> None:
    value = torch.arange(3.0 if len(shape) == 1 else 6.0).view(shape)
    out = spread(value, adjacency([0, 0, 1, 2, 2], 5))
    assert torch.equal(out, torch.stack([value[g] for g in (0, 0, 1, 2, 2)]))


@pytest.mark.parametrize("shape", [(1,), (1, 2)])
def test_spreading_a_single_graph(shape: tuple[int, ...]) -> None:
    out = spread(torch.full(shape, 7.0), adjacency(None, 4))
    assert torch.equal(out, torch.full((4, *shape[1:]), 7.0))
