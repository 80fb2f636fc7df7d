"""Every model that is registered can be built, trained, saved and loaded."""

from __future__ import annotations

import importlib.util
import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from eegnn import load, save
from eegnn.data.problem import Problem
from eegnn.io import MODELS
from eegnn.nn.model import GraphModel
from eegnn.train.models import NAMES, build_model
from eegnn.zoo import registry
from eegnn.zoo.registry import ENTRIES, STEPS, Classes, find
from tests.train.problems import graph_problem, new_run, node_problem, small_config

every_name = pytest.mark.parametrize("name", ENTRIES)


def with_edges() -> Problem:
    return node_problem(edge_dim=2)


PROBLEMS: dict[str, Callable[[], Problem]] = {
    "nodes": node_problem,
    "nodes, edge features": with_edges,
    "graphs": graph_problem,
}
every_problem = pytest.mark.parametrize("problem", PROBLEMS)


def built(name: str, problem: Problem) -> GraphModel:
    torch.manual_seed(0)
    try:
        return build_model(small_config(model=name), problem)
    except ValueError as error:
        if "level" not in str(error):
            raise
        pytest.skip(str(error))


def output(model: GraphModel, problem: Problem, seed: int = 0) -> Tensor:
    """Of the first graph. Some models draw random numbers in evaluation too."""
    torch.manual_seed(seed)
    graph = problem.graphs[0]
    edge_attr = graph.edge_attr if model.edge_dim is not None else None
    return model(graph.x, graph.edge_index, edge_attr)


@every_name
@every_problem
def test_it_is_built_and_gives_finite_losses_and_gradients(name: str, problem: str) -> None:
    task = PROBLEMS[problem]()
    model = built(name, task).train()
    assert type(model) is find(ENTRIES[name].home)
    assert model.edge_dim == (task.edge_dim if model.uses_edges else None)
    out = output(model, task)
    loss = cross_entropy(out, task.graphs[0].y)
    assert math.isfinite(loss.item())
    loss.backward()
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    assert any(bool(gradient.any()) for gradient in gradients)
    assert all(bool(gradient.isfinite().all()) for gradient in gradients)


@every_name
@every_problem
def test_a_saved_model_predicts_the_same(name: str, problem: str, tmp_path: Path) -> None:
    task = PROBLEMS[problem]()
    model = built(name, task).eval()
    save(model, tmp_path / "model.safetensors")
    again = load(tmp_path / "model.safetensors")
    assert type(again) is type(model)
    assert again.config == model.config
    assert torch.equal(output(again, task), output(model, task))


@every_name
def test_it_trains(name: str, tmp_path: Path) -> None:
    summary = new_run(tmp_path, node_problem(), model=name, epochs=1).fit()
    assert summary["model"] == name
    assert math.isfinite(summary["test"])
    assert (
        load(tmp_path / "model.safetensors").config
        == json.loads((tmp_path / "model.json").read_text())["config"]
    )


def test_the_papers_models_come_first() -> None:
    assert [*NAMES][:3] == ["eegnn", "sasgnn", "gcn"]
    assert [*MODELS][:3] == ["EEGNN", "SASGNN", "GCN"]


def test_the_names_of_classes_are_unlike() -> None:
    assert len(MODELS) == len({entry.home for entry in ENTRIES.values()})
    assert all(MODELS[kind].__name__ == kind for kind in MODELS)


def test_each_step_gives_a_model_with_exits() -> None:
    early = {name: entry.options for name, entry in ENTRIES.items() if entry.kind == "EEModel"}
    assert early == {f"ee-{backbone}": {"backbone": backbone} for backbone in STEPS}


def test_what_a_name_stands_for_is_no_option_of_it() -> None:
    with pytest.raises(ValueError, match=r"^options\.backbone is no option of ee-gcn"):
        build_model(small_config(model="ee-gcn", options={"backbone": "sage"}), node_problem())


@pytest.mark.parametrize("name", ["os", "os:system", "eegnn.zoo.gcn:GCN", "gcn", "GCNStep", ""])
def test_nothing_else_can_be_had_by_name(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(registry, "import_module", asked.append)
    assert name not in Classes()
    with pytest.raises(KeyError):
        Classes()[name]
    assert asked == []


def test_a_model_is_imported_when_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "eegnn.zoo.gt", raising=False)
    assert registry.__file__ is not None
    spec = importlib.util.spec_from_file_location("fresh_registry", registry.__file__)
    assert spec is not None
    assert spec.loader is not None
    fresh: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(fresh)
    models = fresh.Classes()
    assert "GT" in list(models)
    assert "eegnn.zoo.gt" not in sys.modules
    assert models["GT"].__name__ == "GT"
    assert "eegnn.zoo.gt" in sys.modules
