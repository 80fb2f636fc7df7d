from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.datasets import FakeDataset

from eegnn.data.files import read_problem
from eegnn.data.npz import problem_from_pyg, write_npz


@pytest.mark.parametrize("many", [False, True])
def test_writing_and_reading_gives_the_same_graphs(many: bool, tmp_path: Path) -> None:
    dataset = FakeDataset(num_graphs=6, edge_dim=3, task="graph" if many else "node")
    graphs = [dataset[i] for i in range(6 if many else 1)]
    for index, graph in enumerate(graphs):
        graph.y = torch.tensor([index % 2]) if many else torch.arange(len(graph.x)) % 3
    parts = (torch.tensor([0, 4]), torch.tensor([1, 5]), torch.tensor([2]))
    path = tmp_path / "fake.npz"
    write_npz(path, graphs, parts)
    problem = read_problem(path)
    assert torch.equal(problem.val, parts[1])
    for given_graph, graph in zip(graphs, problem.graphs, strict=True):
        for key in ("x", "edge_attr", "y"):
            assert torch.equal(given_graph[key], graph[key])
        assert torch.equal(given_graph.edge_index, graph.edge_index)


def test_masks_of_a_graph_are_written(tmp_path: Path) -> None:
    masks = torch.eye(6, dtype=torch.bool)
    graph = Data(
        x=torch.rand(6, 2),
        edge_index=torch.tensor([[0], [1]]),
        y=torch.arange(6) % 2,
        train_mask=masks[0],
        val_mask=masks[1],
        test_mask=masks[2],
    )
    write_npz(tmp_path / "graph.npz", graph)
    problem = read_problem(tmp_path / "graph.npz")
    assert [part.tolist() for part in (problem.train, problem.val, problem.test)] == [[0], [1], [2]]
    direct = problem_from_pyg(graph, name="mine")
    assert torch.equal(direct.train, problem.train)
    assert torch.equal(direct.graphs[0].x, graph.x)


def test_what_could_not_be_read_is_not_written(tmp_path: Path) -> None:
    graph = Data(x=torch.full((2, 1), torch.nan), edge_index=torch.tensor([[0], [1]]))
    with pytest.raises(ValueError, match="graphs: x holds NaN"):
        write_npz(tmp_path / "graph.npz", graph)
    with pytest.raises(ValueError, match=r"path must end in \.npz"):
        write_npz(tmp_path / "graph.npy", graph)
    assert list(tmp_path.iterdir()) == []


def test_a_pyg_dataset_becomes_a_problem() -> None:
    problem = problem_from_pyg(FakeDataset(num_graphs=20), name="fake", num_classes=10)
    assert problem.out_channels == 10  # though not every class need occur
    assert (problem.name, problem.level, problem.task) == ("fake", "graph", "classification")
    assert [len(part) for part in (problem.train, problem.val, problem.test)] == [12, 4, 4]


def test_pyg_data_that_cannot_be_used_is_named() -> None:
    edges = torch.tensor([[0], [1]])
    good = Data(x=torch.rand(2, 1), edge_index=edges, y=torch.tensor([0]))
    with pytest.raises(ValueError, match="mine: graph 1 has no x; the transforms Constant"):
        problem_from_pyg([good, Data(edge_index=edges)], name="mine")
    with pytest.raises(ValueError, match="graph 0 has no edge_index"):
        problem_from_pyg(Data(x=torch.rand(2, 1)))
    with pytest.raises(ValueError, match="y must be given for all graphs or for none"):
        problem_from_pyg([good, Data(x=torch.rand(2, 1), edge_index=edges)])
    with pytest.raises(ValueError, match="x differs in shape between graphs"):
        problem_from_pyg([good, Data(x=torch.rand(2, 3), edge_index=edges, y=good.y)])
    with pytest.raises(TypeError, match="graph 0 must be PyG Data, got str"):
        problem_from_pyg(["graph"])
    with pytest.raises(ValueError, match="there is no graph"):
        problem_from_pyg([])


def test_parts_may_be_given() -> None:
    graphs = [
        Data(x=torch.rand(2, 1), edge_index=torch.tensor([[0], [1]]), y=torch.rand(1))
        for _ in range(4)
    ]
    parts = (torch.tensor([3, 1]), torch.tensor([0]), torch.tensor([2]))
    problem = problem_from_pyg(graphs, parts=parts)
    assert torch.equal(problem.train, parts[0])
    assert problem.task == "regression"
    with pytest.raises(ValueError, match="graphs: train and test must not overlap, but share 3"):
        problem_from_pyg(graphs, parts=(parts[0], parts[1], torch.tensor([3])))
