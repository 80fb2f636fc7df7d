from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from sklearn.metrics import roc_auc_score
from torch import Tensor
from torch_geometric.data import Batch

from eegnn import EEGNN
from eegnn.data.problem import Problem
from eegnn.nn.model import GraphModel
from eegnn.train.batches import Batches
from eegnn.train.evaluate import evaluate
from eegnn.train.models import build_model
from tests.train.problems import (
    graph_problem,
    node_problem,
    regression_problem,
    small_config,
    undecided,
)


def new_model(problem: Problem) -> GraphModel:
    torch.manual_seed(0)
    return undecided(build_model(small_config(), problem), problem)


@pytest.mark.parametrize("part", ["train", "val", "test"])
def test_nodes_are_scored_as_by_hand(part: str) -> None:
    problem = node_problem()
    model, graph = new_model(problem), problem.graphs[0]
    found = evaluate(model, Batches(problem, 1), (part,))[part]
    out, exits = model.predict(graph.x, graph.edge_index)
    index: Tensor = getattr(problem, part)
    assert torch.equal(found.out, out[index])
    assert torch.equal(found.y, graph.y[index])
    assert torch.equal(found.layer, exits.layer[index])
    assert torch.equal(found.time, exits.time[index])
    margin = (out[:, 1] - out[:, 0])[index]
    assert found.score == roc_auc_score(graph.y[index].numpy(), margin.numpy())


@pytest.mark.parametrize("size", [1, 4, 100])
def test_graphs_are_scored_as_by_hand(size: int) -> None:
    problem = graph_problem()
    model = new_model(problem)
    found = evaluate(model, Batches(problem, size), ("val", "test"))
    for part in ("val", "test"):
        index: Tensor = getattr(problem, part)
        data = Batch.from_data_list([problem.graphs[i] for i in index.tolist()])
        out, exits = model.predict(data.x, data.edge_index, batch=data.batch)
        assert torch.allclose(found[part].out, out, atol=1e-6)
        assert torch.equal(found[part].layer, exits.layer)
        right = sum(int(row.argmax()) == int(label) for row, label in zip(out, data.y, strict=True))
        assert found[part].score == pytest.approx(right / len(index))


def test_errors_are_reported_on_the_scale_of_the_problem() -> None:
    plain = regression_problem(scale=1.0)
    model = new_model(plain)
    error = evaluate(model, Batches(plain, 2), ("val",))["val"]
    scaled = evaluate(model, Batches(replace(plain, scale=40.0), 2), ("val",))["val"]
    assert error.score == pytest.approx((error.out - error.y).abs().mean().item())
    assert scaled.score == pytest.approx(40 * error.score)
    assert torch.equal(scaled.out, error.out)


@pytest.mark.parametrize("problem", [node_problem(), graph_problem()], ids=["node", "graph"])
def test_knobs_reach_the_model(problem: Any) -> None:
    model, batches = new_model(problem), Batches(problem, 4)
    own = evaluate(model, batches, ("test",))["test"]
    assert own.layer.max() > own.layer.min()
    limited = evaluate(model, batches, ("test",), max_layers=2)["test"]
    assert torch.equal(limited.layer, own.layer.clamp(max=2))
    early = evaluate(model, batches, ("test",), exit_threshold=0.0)["test"]
    assert early.layer.max() == 1


def test_evaluation_leaves_mode_and_random_numbers_alone() -> None:
    problem = node_problem()
    torch.manual_seed(0)
    model = build_model(small_config(options={"dropout": 0.5}), problem).train()
    before = torch.get_rng_state()
    first, second = (evaluate(model, Batches(problem, 1), ("val",))["val"] for _ in range(2))
    assert torch.equal(first.out, second.out)
    assert model.training
    assert torch.equal(torch.get_rng_state(), before)


def test_one_graph_passes_through_the_model_once(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, calls = node_problem(), []
    model = new_model(problem)
    original = EEGNN.predict

    def counted(self: EEGNN, *args: Any, **kwargs: Any) -> Any:
        calls.append(1)
        return original(self, *args, **kwargs)

    monkeypatch.setattr(EEGNN, "predict", counted)
    evaluate(model, Batches(problem, 1), ("train", "val", "test"))
    assert len(calls) == 1


def test_exits_are_those_of_the_part() -> None:
    problem = node_problem()
    found = evaluate(new_model(problem), Batches(problem, 1), ("val",))["val"]
    assert torch.equal(found.exits.layer, found.layer)
    assert found.exits.num_layers == 4
    assert found.exits.cost.item() == pytest.approx(found.layer.double().mean().item() / 4)
    assert int(found.exits.histogram.sum()) == len(problem.val)
