from __future__ import annotations

import torch

from eegnn.bench.baselines import normalized_csr, pyg_gcn
from tests.bench.inputs import small_graph


def test_both_inputs_of_pyg_give_the_same() -> None:
    graph = small_graph()
    plain = pyg_gcn(4, 2, num_layers=3, normalize=True).eval()
    ready = pyg_gcn(4, 2, num_layers=3, normalize=False).eval()
    ready.load_state_dict(plain.state_dict())
    expected = plain(graph.x, graph.adj.edge_index)
    matrix = normalized_csr(graph.adj)
    assert matrix.col_indices().dtype == torch.int32
    torch.testing.assert_close(ready(graph.x, matrix), expected)
