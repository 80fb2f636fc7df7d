from __future__ import annotations

import torch

from eegnn.graph import Adjacency
from eegnn.zoo.linear_attention import linear_attention
from tests.graphs import both_ways
from tests.zoo.examples import states


def test_it_is_the_quadratic_sum_over_each_graph() -> None:
    batch = torch.tensor([0, 0, 0, 1, 3, 3])  # graph 2 has no nodes
    adj = Adjacency.from_edge_index(both_ways([]), 6, batch)
    query, key, value = (states(6, 8, seed).view(6, 2, 4) for seed in range(3))
    total, weight = linear_attention(query, key, value, adj)
    for i in range(6):
        for head in range(2):
            group = [j for j in range(6) if batch[j] == batch[i]]
            scores = [query[i, head] @ key[j, head] for j in group]
            expected = sum(s * value[j, head] for s, j in zip(scores, group, strict=True))
            assert isinstance(expected, torch.Tensor)
            assert torch.allclose(total[i, head], expected, atol=1e-12)
            assert torch.allclose(weight[i, head, 0], torch.stack(scores).sum(), atol=1e-12)
