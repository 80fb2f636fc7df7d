from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from eegnn.data import encodings as module
from eegnn.data.encodings import Encoding, encode, flip_signs
from eegnn.data.npz import problem_from_pyg
from eegnn.data.problem import Problem

BOTH = pytest.mark.parametrize("kind", ["rwse", "lappe"])


def path(n: int) -> Data:
    one_way = torch.stack([torch.arange(n - 1), torch.arange(1, n)])
    edge_index = torch.cat([one_way, one_way.flip(0)], dim=1)
    return Data(x=torch.rand(n, 2), edge_index=edge_index, y=torch.rand(1))


def paths(*sizes: int) -> Problem:
    return problem_from_pyg([path(n) for n in sizes], level="graph")


def test_random_walks_return_with_these_probabilities() -> None:
    x = encode(paths(3, 4, 5), "rwse", 4).graphs[0].x[:, 2:]
    # On a - b - c a walk from b is back after every second step, one from an end half as often.
    assert x.tolist() == [[0, 0.5, 0, 0.5], [0, 1, 0, 1], [0, 0.5, 0, 0.5]]


@pytest.mark.parametrize("n", [12, 130])  # solved densely, and by ARPACK
def test_eigenvectors_are_those_of_the_laplacian(n: int) -> None:
    x = encode(paths(n, 4, 5), "lappe", 3).graphs[0].x[:, 2:].double()
    graph = path(n)
    adjacency = torch.zeros(n, n, dtype=torch.float64)
    adjacency[graph.edge_index[0], graph.edge_index[1]] = 1
    scale = adjacency.sum(dim=1).rsqrt()
    laplacian = torch.eye(n) - scale[:, None] * adjacency * scale
    for j in range(3):
        value = 1 - math.cos(math.pi * (j + 1) / (n - 1))  # known in closed form for a path
        assert torch.allclose(laplacian @ x[:, j], value * x[:, j], atol=1e-5)
        assert float(x[:, j].norm()) == pytest.approx(1, abs=1e-5)


@BOTH
def test_graphs_smaller_than_k_are_padded(kind: Encoding) -> None:
    lonely = Data(x=torch.rand(1, 2), edge_index=torch.empty(2, 0).long(), y=torch.rand(1))
    problem = problem_from_pyg([lonely, path(3), path(4)], level="graph")
    encoded = encode(problem, kind, 6)
    assert encoded.in_channels == 8
    assert all(bool(graph.x.isfinite().all()) for graph in encoded.graphs)
    assert encoded.graphs[0].x[:, 2:].abs().sum() == 0
    if kind == "lappe":
        assert encoded.graphs[1].x[:, 4:].abs().sum() == 0
        assert bool((encoded.graphs[1].x[:, 2:4].norm(dim=0) > 0.9).all())


@BOTH
def test_the_given_problem_and_the_random_state_stay_as_they_are(kind: Encoding) -> None:
    problem = paths(5, 6, 120)
    before, state = [graph.x.clone() for graph in problem.graphs], torch.get_rng_state()
    encoded = encode(problem, kind, 2)
    assert torch.equal(torch.get_rng_state(), state)
    for old, graph, new in zip(before, problem.graphs, encoded.graphs, strict=True):
        assert torch.equal(graph.x, old)
        assert torch.equal(new.x[:, :2], old)
        assert torch.equal(new.y, graph.y)
    assert encoded.notes[kind] == "columns 2 … 3"


@BOTH
def test_encodings_are_repeatable_and_cached(
    kind: Encoding, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = paths(5, 6, 120)
    first = encode(problem, kind, 3)
    stored = encode(problem, kind, 3, root=tmp_path)
    monkeypatch.setattr(module, "_columns", lambda *_: pytest.fail("computed again"))
    again = encode(problem, kind, 3, root=tmp_path)
    for a, b, c in zip(first.graphs, stored.graphs, again.graphs, strict=True):
        assert torch.equal(a.x, b.x)
        assert torch.equal(b.x, c.x)


def test_other_graphs_or_columns_are_not_taken_from_the_cache(tmp_path: Path) -> None:
    for problem, k in ((paths(4, 5, 6), 2), (paths(4, 6, 5), 2), (paths(4, 5, 6), 3)):
        encode(problem, "rwse", k, root=tmp_path)
    assert len(list(tmp_path.rglob("*.npz"))) == 3


def test_directions_and_self_loops_do_not_matter() -> None:
    plain = path(6)
    one_way = plain.edge_index[:, plain.edge_index[0] < plain.edge_index[1]]
    loops = torch.arange(6).repeat(2, 1)
    odd = Data(x=plain.x, edge_index=torch.cat([one_way, loops], dim=1), y=plain.y)
    encoded = encode(problem_from_pyg([plain, odd, path(3)], level="graph"), "rwse", 4)
    assert torch.equal(encoded.graphs[0].x, encoded.graphs[1].x)


@BOTH
def test_categories_stay_the_first_columns(kind: Encoding) -> None:
    plain = paths(4, 5, 6)
    for graph in plain.graphs:
        graph.x = torch.randint(3, graph.x.shape)
    problem = replace(plain, node_categories=(3, 4))
    encoded = encode(problem, kind, 2)
    numbers = encode(paths(4, 5, 6), kind, 2)  # the same graphs
    for before, after, other in zip(problem.graphs, encoded.graphs, numbers.graphs, strict=True):
        assert before.x.dtype == torch.int64
        assert torch.equal(after.x[:, :2].long(), before.x)
        assert torch.equal(after.x[:, 2:], other.x[:, 2:])
    assert encoded.in_channels == 7 + 2
    assert encoded.notes[kind] == "columns 7 … 8"  # of what a model sees
    with pytest.raises(TypeError, match="graph 0 needs floating-point features"):
        encode(plain, kind, 2)


def test_signs_of_chosen_columns_flip_at_random() -> None:
    x = torch.rand(7, 6) + 0.1
    before = x.clone()
    seen = set()
    for seed in range(40):
        flipped = flip_signs(x, slice(2, 5), torch.Generator().manual_seed(seed))
        assert torch.equal(flipped.abs(), x)
        assert torch.equal(flipped[:, [0, 1, 5]], x[:, [0, 1, 5]])
        signs = np.sign(flipped[:, 2:5].numpy())
        assert (signs == signs[0]).all()
        seen.add(tuple(signs[0].tolist()))
    assert len(seen) == 8
    assert torch.equal(x, before)


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match="kind must be one of 'rwse', 'lappe', got 'sine'"):
        encode(paths(3, 4, 5), "sine", 2)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="k must be at least 1, got 0"):
        encode(paths(3, 4, 5), "rwse", 0)
