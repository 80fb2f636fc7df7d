import torch
from torch_geometric.utils import contains_self_loops, is_undirected

from eegnn.bench.training import compare, skewed_graph, table


def test_both_ways_compute_the_same() -> None:
    threads = torch.get_num_threads()
    rows = compare(threads=1, passes=1)
    assert torch.get_num_threads() == threads
    assert [row.graph for row in rows] == ["size of Tolokers", "100 × 100 grid"]
    for row in rows:
        assert row.difference < 1e-5
        assert row.ratio == row.scatter / row.ours
        assert row.as_dict()["ratio"] == row.ratio
    assert table(rows, threads=1).row_count == 2


def test_skewed_graph_is_undirected_and_skewed() -> None:
    edge_index = skewed_graph(1_000, 20_000)
    assert is_undirected(edge_index)
    assert not contains_self_loops(edge_index)
    degree = torch.bincount(edge_index[0], minlength=1_000).double()
    assert degree.max() > 2 * degree.mean()
