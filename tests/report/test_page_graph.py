from __future__ import annotations

import base64
from typing import Any

import numpy as np
import pytest
import torch

from eegnn import Adjacency
from eegnn.data.minesweeper import minesweeper
from eegnn.data.problem import Problem
from eegnn.nn.model import GraphModel
from eegnn.report import page_graph
from eegnn.report.page_graph import draw_graphs, draw_nodes, explorer
from eegnn.report.page_pack import FULL, script_json
from eegnn.train.batches import Batches
from eegnn.train.models import build_model
from tests.analysis.runs import undecided
from tests.train.problems import (
    graph_problem,
    molecule_problem,
    node_problem,
    regression_problem,
    ring,
    small_config,
)


def unpacked(packed: dict[str, str]) -> np.ndarray[Any, Any]:
    return np.frombuffer(base64.b64decode(packed["data"]), f"<{packed['dtype']}")


def made(problem: Problem, model: str = "eegnn", **options: Any) -> tuple[GraphModel, Batches]:
    torch.manual_seed(0)
    built = build_model(small_config(model=model, options=options), problem)
    undecided(built, problem)
    return built, Batches(problem, 5, built.edge_dim is not None)


def explored(problem: Problem, **options: Any) -> tuple[GraphModel, dict[str, Any]]:
    model, batches = made(problem, **options)
    return model, explorer(model, batches)


def test_nodes_are_followed_through_the_layers() -> None:
    problem = node_problem()
    model, found = explored(problem)
    graph, n = problem.graphs[0], 40
    assert found["unit"] == "node"
    assert unpacked(found["ids"]).tolist() == list(range(n))
    out, exits = model.predict(graph.x, graph.edge_index)
    assert len(set(exits.layer.tolist())) > 1
    assert unpacked(found["layer"]).tolist() == exits.layer.tolist()
    np.testing.assert_allclose(unpacked(found["time"]), exits.time, atol=1e-6)
    _, on = model.predict(graph.x, graph.edge_index, exit_threshold=1.0)
    tau = unpacked(found["tau"]).reshape(4, n) / FULL
    np.testing.assert_allclose(tau, on.tau, atol=1e-5)
    stay = unpacked(found["stay"]).reshape(4, n) / FULL
    for layer in range(1, 4):  # who goes on after a layer with less than one half has left by then
        gone = model.predict(graph.x, graph.edge_index, exit_threshold=0.5)[1].layer <= layer
        assert (stay[layer - 1] < 0.5).tolist() == gone.tolist()
    labels = unpacked(found["answer"]).reshape(4, n)
    sure = unpacked(found["sure"]).reshape(4, n) / FULL
    for layer in range(1, 5):
        stopped, _ = model.predict(graph.x, graph.edge_index, exit_threshold=1.0, max_layers=layer)
        assert labels[layer - 1].tolist() == stopped.argmax(-1).tolist()
        np.testing.assert_allclose(sure[layer - 1], stopped.softmax(-1).amax(-1), atol=2e-5)
    own = labels[exits.layer.numpy() - 1, np.arange(n)]
    assert own.tolist() == out.argmax(-1).tolist()
    part = unpacked(found["part"])
    assert [np.flatnonzero(part == k).tolist() for k in range(3)] == [
        sorted(index.tolist()) for index in (problem.train, problem.val, problem.test)
    ]
    assert unpacked(found["truth"]).tolist() == graph.y.tolist()
    assert unpacked(found["size"]).tolist() == [2] * n


def test_nodes_that_freeze_keep_the_answer_they_gave() -> None:
    problem = node_problem()
    model, found = explored(problem, after_exit="freeze", step_size=1.0)
    out, exits = model.predict(problem.graphs[0].x, problem.graphs[0].edge_index)
    row = exits.layer.numpy() - 1, np.arange(40)
    assert unpacked(found["answer"]).reshape(4, 40)[row].tolist() == out.argmax(-1).tolist()
    sure = unpacked(found["sure"]).reshape(4, 40)[row] / FULL
    np.testing.assert_allclose(sure, out.softmax(-1).amax(-1), atol=2e-5)


def test_a_model_of_fixed_depth_has_no_survival() -> None:
    _, found = explored(node_problem(), model="sasgnn")
    assert "stay" not in found
    assert set(unpacked(found["layer"]).tolist()) == {4}
    assert unpacked(found["answer"]).size == 4 * 40


@pytest.mark.parametrize("problem", [graph_problem(), molecule_problem()], ids=lambda p: p.name)
def test_graphs_are_units_in_order_of_their_exits(problem: Problem) -> None:
    model, found = explored(problem)
    ids, layer = unpacked(found["ids"]), unpacked(found["layer"])
    assert found["unit"] == "graph"
    assert sorted(ids.tolist()) == sorted(problem.test.tolist())
    assert layer.tolist() == sorted(layer.tolist())
    sizes = [problem.graphs[i].num_nodes for i in ids]
    assert unpacked(found["size"]).tolist() == sizes
    assert np.bincount(unpacked(found["unitOf"])).tolist() == sizes
    assert unpacked(found["truth"]).tolist() == [int(problem.graphs[i].y) for i in ids]
    assert unpacked(found["answer"]).size == 4 * ids.size
    assert model.level == "graph"


def test_values_are_in_the_units_of_the_data() -> None:
    problem = regression_problem(scale=10.0)
    _, found = explored(problem)
    y = torch.cat([problem.graphs[i].y for i in problem.test.tolist()])
    assert found["unit"] == "node"
    np.testing.assert_allclose(unpacked(found["target"]), 10 * y[:, 0], rtol=1e-6)
    assert unpacked(found["value"]).size == 4 * y.size(0)


def test_labels_are_counted() -> None:
    answers = torch.tensor([[[1.0, -1.0], [2.0, 3.0]]])
    y = torch.tensor([[1.0, 1.0], [1.0, 1.0]])
    found = page_graph.ANSWERS["multilabel"](answers, y, 1.0)
    assert unpacked(found["count"]).tolist() == [1, 2]
    np.testing.assert_allclose(unpacked(found["right"]) / FULL, [0.5, 1.0], atol=1e-5)


def test_of_a_large_graph_a_sample_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_graph, "NODES", 12)
    problem = node_problem()
    _, found = explored(problem)
    ids = unpacked(found["ids"])
    assert found["units"] == ids.size == 12
    assert int(problem.test[0]) in ids
    assert unpacked(found["answer"]).size == 4 * 12
    edges = unpacked(found["edges"]).reshape(-1, 2)
    assert {tuple(sorted(ids[pair].tolist())) for pair in edges} == {
        (u, v) for u, v in ring(40).T.tolist() if u < v and u in ids and v in ids
    }
    assert "12 of 40 nodes" in found["caption"]


def test_of_many_edges_some_are_drawn_and_no_node_is_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(page_graph, "EDGES", 60)
    drawing = draw_nodes(Adjacency.from_edge_index(ring(40, chords=200), 40), 0)
    assert drawing.edges.shape == (2, 60)
    assert set(drawing.edges.ravel().tolist()) == set(range(40))
    assert "60 of the 240 edges" in drawing.caption


def test_boards_have_cells_row_by_row() -> None:
    board = minesweeper(5)
    drawing = draw_nodes(Adjacency.from_edge_index(board.edge_index, 25), 0)
    assert drawing.side == 5
    np.testing.assert_allclose(drawing.place[7], [0.5, 0.3])  # row 1, column 2


def test_graphs_stay_in_their_cells() -> None:
    batch = torch.tensor([0, 0, 0, 1, 2, 2])
    edges = torch.tensor([[0, 1, 1, 2, 4, 5], [1, 0, 2, 1, 5, 4]])
    drawing = draw_graphs(Adjacency.from_edge_index(edges, 6, batch), np.array([7, 8, 9]), True)
    assert drawing.unit.tolist() == batch.tolist()
    assert drawing.ids.tolist() == [7, 8, 9]
    assert drawing.aspect == 3.0
    cell = np.floor(drawing.place[:, 0] * 3)
    assert cell.tolist() == batch.tolist()


def test_at_most_so_many_graphs_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_graph, "GRAPHS", 3)
    _, found = explored(graph_problem())
    assert unpacked(found["ids"]).size == 3


@pytest.mark.slow
def test_ten_thousand_cells_take_little_room() -> None:
    board = minesweeper(100)
    masks = (board.train_mask, board.val_mask, board.test_mask)
    train, val, test = (mask.nonzero().view(-1) for mask in masks)
    problem = Problem(
        "board", [board], "node", "classification", "roc_auc", 2, train, val, test, inductive=False
    )
    torch.manual_seed(0)
    model = undecided(build_model(small_config(num_layers=20), problem), problem)
    found = explorer(model, Batches(problem, 1))
    assert found["side"] == 100
    assert len(script_json(found)) < 4e6
