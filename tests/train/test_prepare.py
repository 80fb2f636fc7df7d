from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from eegnn.data.problem import Problem
from eegnn.train import prepare as module
from eegnn.train.prepare import prepare, prepare_unseen, standardize
from tests.train.problems import (
    graph_problem,
    molecule_problem,
    node_problem,
    ring,
    small_config,
)


def shifted(problem: Problem) -> Problem:
    """The same problem with features far from mean 0 and variance 1."""
    graphs = [graph.clone() for graph in problem.graphs]
    for graph in graphs:
        graph.x = graph.x * torch.tensor([3.0, 0.01, 7.0])[: graph.x.size(1)] + 5
    return replace(problem, graphs=graphs)


def test_features_of_one_graph_get_mean_0_and_variance_1() -> None:
    problem = shifted(node_problem())
    x = problem.graphs[0].x.numpy().astype(np.float64)
    found = standardize(problem.graphs, problem)[0].x
    np.testing.assert_allclose(found.numpy(), (x - x.mean(axis=0)) / x.std(axis=0), atol=2e-4)


def test_many_graphs_are_treated_with_the_figures_of_the_training_graphs() -> None:
    problem = shifted(graph_problem())
    training = [problem.graphs[i].x for i in problem.train.tolist()]
    x = torch.cat(training).numpy().astype(np.float64)
    for before, after in zip(problem.graphs, standardize(problem.graphs, problem), strict=True):
        expected = (before.x.numpy() - x.mean(axis=0)) / x.std(axis=0)
        np.testing.assert_allclose(after.x.numpy(), expected, atol=2e-4)


def test_other_graphs_than_those_for_training_decide_nothing() -> None:
    problem = graph_problem()
    graphs = [graph.clone() for graph in problem.graphs]
    for i in (*problem.val.tolist(), *problem.test.tolist()):
        graphs[i].x = graphs[i].x + 1000
    first = int(problem.train[0])
    found = standardize(graphs, replace(problem, graphs=graphs))[first].x
    assert torch.equal(found, standardize(problem.graphs, problem)[first].x)


@pytest.mark.parametrize("value", [0.0, 0.1, 1 / 3, -7.7, 1e6])
@pytest.mark.parametrize("n", [1, 40, 999])
def test_a_feature_that_does_not_vary_becomes_0(value: float, n: int) -> None:
    x = torch.cat([torch.full((n, 1), value), torch.randn(n, 1)], dim=1)
    edges = torch.zeros(2, 0, dtype=torch.int64)
    one = torch.tensor([0])
    graph = Data(x=x, edge_index=edges, y=torch.zeros(n, dtype=torch.int64))
    problem = Problem("p", [graph], "node", "classification", "accuracy", 2, one, one, one, False)
    found = standardize(problem.graphs, problem)[0].x
    assert (found[:, 0] == 0).all()
    assert found.isfinite().all()


def test_the_problem_itself_is_left_alone() -> None:
    problem = shifted(node_problem())
    before = problem.graphs[0].x.clone()
    (found,) = standardize(problem.graphs, problem)
    assert torch.equal(problem.graphs[0].x, before)
    assert torch.equal(found.edge_index, problem.graphs[0].edge_index)


def test_without_features_there_is_nothing_to_do() -> None:
    graph = Data(edge_index=ring(40), y=node_problem().graphs[0].y, num_nodes=40)
    problem = replace(node_problem(), graphs=[graph])
    assert standardize(problem.graphs, problem) is problem.graphs


@pytest.mark.parametrize("wanted", [False, True])
def test_the_configuration_decides(wanted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    problem, asked = shifted(node_problem()), []

    def open_problem(dataset: str, split: int, root: Path | None) -> Problem:
        asked.append((dataset, split, root))
        return problem

    monkeypatch.setattr(module, "open_problem", open_problem)
    found = prepare(small_config(split=3, standardize=wanted), Path("data"))
    assert asked == [("by-hand", 3, Path("data"))]
    expected = standardize(problem.graphs, problem) if wanted else problem.graphs
    assert torch.equal(found.graphs[0].x, expected[0].x)
    assert (found.train, found.metric) == (problem.train, problem.metric)


def test_other_graphs_are_treated_with_the_figures_of_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problem = shifted(graph_problem())
    monkeypatch.setattr(module, "open_problem", lambda dataset, split, root: problem)
    unseen = shifted(graph_problem(seed=1)).graphs
    training = torch.cat([problem.graphs[i].x for i in problem.train.tolist()])
    x = training.numpy().astype(np.float64)
    found = prepare_unseen(unseen, small_config(standardize=True))
    for before, after in zip(unseen, found, strict=True):
        expected = (before.x.numpy() - x.mean(axis=0)) / x.std(axis=0)
        np.testing.assert_allclose(after.x.numpy(), expected, atol=2e-4)


def test_other_graphs_stay_as_they_are_where_the_run_does_nothing() -> None:
    unseen = graph_problem().graphs
    assert prepare_unseen(unseen, small_config()) is unseen


def test_categories_are_not_shifted() -> None:
    problem = molecule_problem()
    assert standardize(problem.graphs, problem) is problem.graphs


@pytest.mark.parametrize("encoding", ["rwse:2", "lappe:2"])
def test_numbers_after_categories_are_shifted_and_scaled(
    encoding: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    problem = molecule_problem()
    monkeypatch.setattr(module, "open_problem", lambda dataset, split, root: problem)
    plain = small_config(encoding=encoding)
    encoded = prepare(plain, tmp_path)
    config = small_config(encoding=encoding, standardize=True)
    found = prepare(config, tmp_path)
    assert found.in_channels == problem.in_channels + 2
    training = torch.cat([encoded.graphs[i].x[:, 2:] for i in problem.train.tolist()])
    x = training.numpy().astype(np.float64)
    scale = np.where(x.std(axis=0) > 1e-6, x.std(axis=0), np.inf)  # what does not vary becomes 0
    others = prepare_unseen(problem.graphs, config, tmp_path)
    for given, before, after, other in zip(
        problem.graphs, encoded.graphs, found.graphs, others, strict=True
    ):
        assert torch.equal(after.x[:, :2], given.x.float())
        expected = (before.x[:, 2:].numpy() - x.mean(axis=0)) / scale
        np.testing.assert_allclose(after.x[:, 2:].numpy(), expected, atol=2e-4)
        assert torch.equal(other.x, after.x)
