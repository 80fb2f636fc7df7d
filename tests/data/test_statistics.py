from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from torch_geometric.data import Data

from eegnn.data.problem import Problem
from eegnn.data.registry import DATASETS, open_dataset
from eegnn.data.statistics import (
    Difference,
    adjusted_homophily,
    differences,
    distance_statistics,
    statistics,
)

# A path of four nodes, classes 0 0 1 1: 2 of 3 edges stay within a class. Degrees 1 2 2 1, so each
# class has D = 3 of 2|E| = 6, and chance gives 2 · (1/2)² = 1/2: (2/3 − 1/2) / (1 − 1/2) = 1/3.
PATH = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])
CLASSES = torch.tensor([0, 0, 1, 1])


def problem_of(*graphs: Data, inductive: bool) -> Problem:
    return Problem(
        name="tiny",
        graphs=graphs,
        level="graph" if inductive else "node",
        task="classification",
        metric="accuracy",
        out_channels=2,
        train=torch.tensor([0]),
        val=torch.tensor([0]),
        test=torch.tensor([0]),
        inductive=inductive,
    )


def test_adjusted_homophily_of_a_path_by_hand() -> None:
    assert adjusted_homophily(PATH, CLASSES) == pytest.approx(1 / 3)


def test_adjusted_homophily_with_unequal_classes_by_hand() -> None:
    # A star: centre 0 of class 0; leaves 1, 2 of class 0 and 3 of class 1. h = 2/3, D = (5, 1),
    # chance (25 + 1) / 36 = 13/18, so (12/18 − 13/18) / (5/18) = −1/5.
    star = torch.tensor([[0, 0, 0, 1, 2, 3], [1, 2, 3, 0, 0, 0]])
    assert adjusted_homophily(star, torch.tensor([0, 0, 0, 1])) == pytest.approx(-1 / 5)


def test_adjusted_homophily_of_a_single_class_is_undefined() -> None:
    assert math.isnan(adjusted_homophily(PATH, torch.zeros(4, dtype=torch.int64)))


def test_random_labels_are_neither_homophilic_nor_heterophilic() -> None:
    generator = torch.Generator().manual_seed(0)
    one_way = torch.randint(2_000, (2, 100_000), generator=generator)
    y = torch.multinomial(torch.tensor([0.8, 0.1, 0.1]), 2_000, True, generator=generator)
    assert abs(adjusted_homophily(torch.cat([one_way, one_way.flip(0)], 1), y)) < 0.02


def test_counts_of_one_graph() -> None:
    loop = torch.cat([PATH, torch.tensor([[3], [3]])], dim=1)
    found = statistics(
        problem_of(Data(x=torch.ones(4, 5), edge_index=loop, y=CLASSES), inductive=False)
    )
    assert found == {
        "nodes": 4,
        "edges": 7,
        "undirected_edges": 4,
        "mean_degree": 7 / 4,
        "features": 5,
        "classes": 2,
        "homophily": pytest.approx(5 / 7),
        "adjusted_homophily": pytest.approx(adjusted_homophily(loop, CLASSES)),
    }


def test_counts_of_several_graphs_have_means_and_no_homophily() -> None:
    path = Data(x=torch.ones(4, 5), edge_index=PATH, y=torch.tensor([1]))
    lone = Data(
        x=torch.ones(1, 5), edge_index=torch.empty(2, 0, dtype=torch.int64), y=torch.tensor([0])
    )
    found = statistics(problem_of(path, lone, inductive=True))
    assert (found["graphs"], found["mean_nodes"], found["mean_edges"]) == (2, 2.5, 3.0)
    assert found["mean_undirected_edges"] == 1.5
    assert "homophily" not in found


def test_distances_are_means_over_connected_graphs() -> None:
    path = Data(edge_index=PATH, num_nodes=4)  # 3 · 1, 2 · 2 and 1 · 3 hops: 10 / 6 on average
    edge = Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=2)
    apart = Data(edge_index=edge.edge_index, num_nodes=3)
    found = distance_statistics([path, edge, apart])
    assert found["mean_shortest_path"] == pytest.approx((10 / 6 + 1) / 2)
    assert found["mean_diameter"] == 2


def test_figures_are_compared_as_rounded_when_published() -> None:
    texas = {
        "nodes": 183,
        "edges": 574,
        "features": 1_703,
        "classes": 5,
        "homophily": 0.0871,
        "adjusted_homophily": -0.2587,
    }
    assert differences("texas", texas) == []
    other = {**texas, "edges": 575, "homophily": 0.096}
    del other["adjusted_homophily"]
    assert differences("texas", other) == [
        Difference("edges", 574, 575, known=False),
        Difference("homophily", 0.09, 0.096, known=False),
        Difference("adjusted_homophily", -0.26, None, known=False),
    ]


def test_an_error_of_the_paper_is_known_only_if_the_files_have_the_recorded_figure() -> None:
    published = DATASETS["wisconsin"].figures
    wisconsin = {**published, "homophily": 0.1921}
    assert differences("wisconsin", wisconsin) == [
        Difference("homophily", 0.20, 0.1921, known=True)
    ]
    other = {**published, "homophily": 0.17}
    assert [difference.known for difference in differences("wisconsin", other)] == [False]


@pytest.mark.data
@pytest.mark.parametrize(
    "name", ["texas", "wisconsin", "cornell", "minesweeper", "tolokers", "cora", "enzymes", "photo"]
)
def test_real_data_have_the_published_figures(name: str, real_root: Path) -> None:
    wrong = {"wisconsin": ["homophily"], "enzymes": ["mean_undirected_edges"]}
    found = differences(name, statistics(open_dataset(name, root=real_root)))
    assert all(difference.known for difference in found)
    assert [difference.figure for difference in found] == wrong.get(name, [])
