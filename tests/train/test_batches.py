from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import chain

import pytest
import torch
from torch import Tensor

from eegnn.data.problem import Problem
from eegnn.train.batches import Batches, MiniBatch
from tests.train.problems import (
    KINDS,
    graph_problem,
    molecule_problem,
    node_problem,
    regression_problem,
)


def numbered(problem: Problem) -> Problem:
    """Graphs whose label is their index."""
    graphs = [graph.clone() for graph in problem.graphs]
    for i, graph in enumerate(graphs):
        graph.y = torch.tensor([i])
    return replace(problem, graphs=graphs)


def order_of(found: list[list[int]]) -> tuple[int, ...]:
    return tuple(chain.from_iterable(found))


def epoch(batches: Batches, generator: torch.Generator) -> list[list[int]]:
    """The graphs of each batch of one epoch."""
    return [batch.labels.tolist() for batch in batches.training(generator)]


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("size", [1, 5, 12, 100])
def test_an_epoch_takes_every_training_graph_once(size: int) -> None:
    problem = numbered(graph_problem())
    found = epoch(Batches(problem, size), seeded())
    assert Counter(order_of(found)) == Counter(problem.train.tolist())
    assert all(len(batch) == size for batch in found[:-1])
    assert 1 <= len(found[-1]) <= size


def test_every_epoch_has_its_own_order() -> None:
    batches, generator = Batches(numbered(graph_problem()), 4), seeded()
    orders = {order_of(epoch(batches, generator)) for _ in range(5)}
    assert len(orders) == 5


def test_the_same_generator_gives_the_same_orders() -> None:
    runs = []
    for seed in (3, 3, 4):
        batches, generator = Batches(numbered(graph_problem()), 4), seeded(seed)
        runs.append([epoch(batches, generator) for _ in range(3)])
    assert runs[0] == runs[1]
    assert runs[0] != runs[2]


def test_the_order_takes_nothing_from_the_global_random_numbers() -> None:
    torch.manual_seed(0)
    before = torch.get_rng_state()
    epoch(Batches(numbered(graph_problem()), 4), seeded())
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("part", ["train", "val", "test"])
def test_parts_are_batched_in_the_order_of_the_split(part: str) -> None:
    problem = numbered(graph_problem())
    batches = Batches(problem, 4)
    expected: Tensor = getattr(problem, part)
    for _ in range(2):
        found = [batch.labels for batch in batches.part(part)]
        assert torch.cat(found).tolist() == expected.tolist()


def test_parts_are_made_once() -> None:
    batches = Batches(graph_problem(), 4)
    assert batches.part("val") is batches.part("val")


def test_a_batch_holds_the_graphs_side_by_side() -> None:
    problem = graph_problem()
    (batch,) = Batches(problem, 100).part("val")
    graphs = [problem.graphs[i] for i in problem.val.tolist()]
    assert batch.x is not None
    assert torch.equal(batch.x, torch.cat([graph.x for graph in graphs]))
    assert batch.adj.num_graphs == len(graphs)
    assert batch.adj.batch is not None
    assert batch.adj.batch.bincount().tolist() == [graph.num_nodes for graph in graphs]
    assert batch.adj.num_edges == sum(graph.num_edges for graph in graphs)


def test_all_nodes_of_a_batch_count_where_nodes_are_predicted() -> None:
    problem = regression_problem()
    (batch,) = Batches(problem, 100).part("test")
    targets = [problem.graphs[i].y for i in problem.test.tolist()]
    assert torch.equal(batch.labels, torch.cat(targets))
    out = torch.arange(len(batch.labels))
    assert batch.select(out) is out


def test_the_parts_of_one_graph_share_it() -> None:
    batches = Batches(node_problem(), 4)
    whole = batches.whole()
    assert whole is not None
    for part in ("train", "val", "test"):
        (batch,) = batches.part(part)
        assert batch.adj is whole.adj
        assert batch.x is whole.x
    (training,) = batches.training(seeded())
    assert training.adj is whole.adj


def test_the_parts_of_one_graph_differ_in_the_nodes_that_count() -> None:
    problem = node_problem()
    batches = Batches(problem, 4)
    for part in ("train", "val", "test"):
        (batch,) = batches.part(part)
        index: Tensor = getattr(problem, part)
        assert torch.equal(batch.labels, problem.graphs[0].y[index])
        assert torch.equal(batch.select(torch.arange(40)), index)


def test_one_graph_needs_no_order() -> None:
    generator = seeded()
    before = generator.get_state()
    list(Batches(node_problem(), 4).training(generator))
    assert torch.equal(generator.get_state(), before)


def test_many_graphs_have_no_whole() -> None:
    assert Batches(graph_problem(), 4).whole() is None


def test_edge_features_come_along() -> None:
    problem = node_problem(edge_dim=2)
    whole = Batches(problem, 1).whole()
    assert whole is not None
    assert whole.edge_attr is problem.graphs[0].edge_attr


def test_without_an_index_all_batch_count() -> None:
    whole = Batches(node_problem(), 1).whole()
    assert isinstance(whole, MiniBatch)
    assert whole.y is not None
    assert torch.equal(whole.labels, whole.y)


@pytest.mark.parametrize("size", [1, 100])
def test_categories_become_columns_of_zeros_and_ones(size: int) -> None:
    problem = molecule_problem()
    graphs = [problem.graphs[i] for i in problem.val.tolist()]
    batches = Batches(problem, size).part("val")
    x = torch.cat([batch.x for batch in batches if batch.x is not None])
    codes = torch.cat([graph.x for graph in graphs])
    assert torch.equal(x[:, : KINDS[0]], (codes[:, :1] == torch.arange(KINDS[0])).float())
    assert torch.equal(x[:, KINDS[0] :], (codes[:, 1:] == torch.arange(KINDS[1])).float())
    bonds = torch.cat([batch.edge_attr for batch in batches if batch.edge_attr is not None])
    assert (
        bonds.argmax(dim=1).tolist() == torch.cat([g.edge_attr for g in graphs]).view(-1).tolist()
    )
    assert bonds.sum(dim=1).unique().tolist() == [1.0]


def test_batches_that_are_kept_stay_small() -> None:
    (batch,) = Batches(molecule_problem(), 100).part("val")
    assert batch.raw_x is not None
    assert batch.x is not None
    assert batch.raw_x.size(1) == len(KINDS)
    assert batch.x is not batch.x


def test_a_kind_that_does_not_exist_is_named() -> None:
    problem = molecule_problem()
    problem.graphs[int(problem.train[3])].edge_attr[1, 0] = 3
    with pytest.raises(ValueError, match=r"edge_attr: column 0 .* in 0 … 2, got 3"):
        next(Batches(problem, 100).training(seeded()))
