"""The generated task of distances."""

from __future__ import annotations

import pytest
import torch
from scipy.sparse.csgraph import shortest_path  # type: ignore[import-untyped]
from torch_geometric.utils import to_scipy_sparse_matrix

from eegnn.data.distances import distances
from eegnn.data.open import open_problem


@pytest.mark.parametrize("farthest", [2, 6, 12])
def test_labels_are_shortest_paths_up_to_a_cap(farthest: int) -> None:
    problem = distances(farthest, size=0.02, seed=1)
    assert (len(problem.train), len(problem.val), len(problem.test)) == (4, 1, 1)
    for graph in problem.graphs:
        far = shortest_path(to_scipy_sparse_matrix(graph.edge_index), unweighted=True)
        for (i, j), y in zip(graph.edge_label_index.T.tolist(), graph.y.tolist(), strict=True):
            assert y == min(far[i, j], farthest) - 1
        assert graph.y.bincount().tolist() == [8] * farthest


def test_a_seed_gives_one_problem() -> None:
    one, same, other = (open_problem("distances-4@0.01", split) for split in (3, 3, 4))
    assert torch.equal(one.graphs[0].x, same.graphs[0].x)
    assert not torch.equal(one.graphs[0].x, other.graphs[0].x)
    assert not torch.equal(one.graphs[0].x, one.graphs[1].x)


@pytest.mark.parametrize("farthest", [1, 13])
def test_distances_that_a_ring_does_not_have_are_refused(farthest: int) -> None:
    with pytest.raises(ValueError, match="farthest must be at"):
        distances(farthest)
