"""Links and labels of pairs: splits, leaks, negatives, one's own files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.transforms import RandomLinkSplit
from torch_geometric.utils import erdos_renyi_graph, is_undirected

from eegnn import Adjacency
from eegnn.data.files import read_problem
from eegnn.data.links import (
    draw_links,
    draw_negatives,
    link_problem,
    problem_from_link_split,
)
from eegnn.data.npz import problem_from_pyg

Pair = tuple[int, int]


def graph(n: int = 40) -> Data:
    torch.manual_seed(0)
    return Data(x=torch.rand(n, 3), edge_index=erdos_renyi_graph(n, 0.2))


def both_ways(pairs: Tensor) -> set[Pair]:
    return {(u, v) for u, v in pairs.T.tolist()} | {(v, u) for u, v in pairs.T.tolist()}


def test_links_are_split_and_hidden_from_those_who_predict_them() -> None:
    data = graph()
    problem = link_problem("mine", data, 0, {})
    links = both_ways(data.edge_index)
    predicted = []
    for part in problem.graphs:
        known = both_ways(part.edge_index)
        assert is_undirected(part.edge_index)
        assert known < links
        label = part.y.view(-1)
        positive = both_ways(part.edge_label_index[:, label == 1])
        negative = both_ways(part.edge_label_index[:, label == 0])
        assert positive <= links
        assert not negative & links
        predicted.append(positive)
    train, val, test = (both_ways(part.edge_index) for part in problem.graphs)
    assert train == val == predicted[0]
    assert test == val | predicted[1]
    assert not test & predicted[2]
    assert test | predicted[2] == links
    assert problem.draws_negatives
    assert problem.predicts_links


def test_a_seed_gives_one_split_and_leaves_other_random_numbers_alone() -> None:
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    first, second, other = (link_problem("mine", graph(), seed, {}) for seed in (1, 1, 2))
    torch.manual_seed(3)
    link_problem("mine", graph_of(first), 1, {})
    assert torch.equal(torch.rand(2), expected)
    for one, same, another in zip(first.graphs, second.graphs, other.graphs, strict=True):
        assert torch.equal(one.edge_label_index, same.edge_label_index)
        assert not torch.equal(one.edge_index, another.edge_index)


def graph_of(problem: Any) -> Data:
    return problem.graphs[2]


def test_a_link_that_leaks_into_the_test_graph_is_refused() -> None:
    parts = RandomLinkSplit(0.1, 0.1, is_undirected=True)(graph())
    problem_from_link_split("mine", parts)
    test = parts[2]
    u, v = test.edge_label_index[:, test.edge_label == 1][:, 0].tolist()
    test.edge_index = torch.cat([test.edge_index, torch.tensor([[v], [u]])], dim=1)
    message = rf"mine: edge_index of the test part .* holds 1, first \({u}, {v}\)"
    with pytest.raises(ValueError, match=message):
        problem_from_link_split("mine", parts)


def test_a_part_without_negatives_is_refused() -> None:
    parts = RandomLinkSplit(0.1, 0.1, is_undirected=True, neg_sampling_ratio=0.0)(graph())
    with pytest.raises(ValueError, match="edge_label of the val part must hold both 0 and 1"):
        problem_from_link_split("mine", parts)


@pytest.mark.parametrize("batch", [None, torch.arange(40) // 20])
def test_negatives_are_pairs_that_are_neither_joined_nor_asked_for(batch: Tensor | None) -> None:
    edges = graph().edge_index
    if batch is not None:
        edges = edges[:, batch[edges[0]] == batch[edges[1]]]
    pairs = torch.tensor([[0, 1], [2, 3]])
    adj = Adjacency.from_edge_index(edges, 40, batch).with_pairs(pairs)
    found = draw_negatives(adj, 60, seed=5)
    assert 50 <= found.size(1) <= 70
    assert torch.equal(found, draw_negatives(adj, 60, seed=5))
    assert not torch.equal(found[:, :20], draw_negatives(adj, 60, seed=6)[:, :20])
    assert not both_ways(found) & (both_ways(edges) | both_ways(pairs))
    assert (found[0] != found[1]).all()
    if batch is not None:
        assert torch.equal(batch[found[0]], batch[found[1]])


def test_a_step_of_training_hides_the_links_that_it_predicts() -> None:
    part = link_problem("mine", graph(), 0, {}).graphs[0]
    adj = Adjacency.from_edge_index(part.edge_index, 40).with_pairs(part.edge_label_index)
    generator, links = torch.Generator().manual_seed(0), both_ways(part.edge_index)
    steps = [draw_links(adj, generator) for _ in range(2)]
    for pairs, label, known in steps:
        positive, negative = (both_ways(pairs[:, label.view(-1) == k]) for k in (1, 0))
        assert int(label.sum()) == round(0.3 * part.edge_label_index.size(1))
        assert positive < links
        assert not negative & links
        assert both_ways(part.edge_index[:, known]) == links - positive
    assert not torch.equal(steps[0][0], steps[1][0])


PAIRS = np.array([[0, 1, 2, 3, 4, 0], [1, 2, 3, 4, 5, 5]])
EDGES = np.array([[0, 2, 5], [3, 4, 1]])


def write(folder: Path, **arrays: Any) -> Path:
    x = np.ones((6, 2), dtype=np.float32)
    given = {"x": x, "edge_index": EDGES, "edge_label_index": PAIRS, **arrays}
    np.savez(folder / "mine.npz", allow_pickle=False, **given)
    return folder / "mine.npz"


def test_pairs_of_a_file_with_labels_0_and_1_are_links(tmp_path: Path) -> None:
    split = {"train": [0, 1], "val": [2, 3], "test": [4, 5]}
    label = np.array([1.0, 1, 0, 1, 0, 1])
    problem = read_problem(write(tmp_path, edge_label=label, **split))
    assert problem.predicts_links
    assert problem.draws_negatives
    assert (problem.metric, problem.out_channels) == ("roc_auc", 1)
    assert problem.graphs[1].edge_label_index.tolist() == [[2, 3], [3, 4]]
    assert problem.graphs[2].y.tolist() == [[0.0], [1.0]]
    metric = read_problem(write(tmp_path, edge_label=label, **split), metric="mrr").metric
    assert metric == "mrr"


def test_integers_are_kinds_of_edges_which_may_be_in_the_graph(tmp_path: Path) -> None:
    split = {"train": [0, 1], "val": [2, 3], "test": [4, 5]}
    edges = np.concatenate([EDGES, PAIRS], axis=1)
    path = write(tmp_path, edge_index=edges, edge_label=np.array([0, 1, 2, 0, 1, 2]), **split)
    problem = read_problem(path)
    assert (problem.level, problem.task, problem.out_channels) == ("edge", "classification", 3)
    assert not problem.draws_negatives
    assert problem.graphs[1].y.tolist() == [2, 0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"edge_label": np.ones(5)}, r"edge_label_index must have shape \[2, P\]"),
        ({"edge_label_index": PAIRS + 1}, "edge_label_index must lie in 0 … 5"),
        ({"edge_label": np.array([0, 5, 2, 0, 1, 2])}, "edge_label: y must hold class numbers"),
        ({"ptr": np.array([0, 3, 6]), "edge_index": EDGES[:, :0]}, "on one graph without ptr"),
    ],
)
def test_wrong_pairs_of_a_file_are_refused(
    change: dict[str, Any], message: str, tmp_path: Path
) -> None:
    label = np.array([0, 1, 2, 0, 1, 2])
    with pytest.raises(ValueError, match=message):
        read_problem(write(tmp_path, **{"edge_label": label, **change}))


def test_pairs_of_pyg_data_are_kept() -> None:
    data = graph(6)
    data.edge_label_index, data.edge_label = torch.from_numpy(PAIRS), torch.arange(6) % 2
    parts = (torch.tensor([0]), torch.tensor([1, 2]), torch.tensor([4]))
    problem = problem_from_pyg(data, parts=parts)
    assert (problem.level, problem.task) == ("edge", "classification")
    assert problem.graphs[1].edge_label_index.tolist() == PAIRS[:, 1:3].tolist()
