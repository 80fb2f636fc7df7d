from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from eegnn import EEGNN, SASGNN, Adjacency
from eegnn.analysis.layers import LayerOutputs, outputs_by_layer, outputs_by_part
from eegnn.data.problem import Problem
from eegnn.nn.model import GraphModel
from eegnn.train.batches import Batches
from eegnn.train.models import build_model
from tests import transcription
from tests.analysis.runs import undecided
from tests.nn.exit_examples import (
    GRAPHS,
    Config,
    L,
    batch_of_graphs,
    connected_or_not,
    features,
    make,
)
from tests.nn.model_examples import BOTH, EDGE_INDEX, NUM_NODES, build, edge_features
from tests.nn.model_examples import features as node_features
from tests.train.problems import graph_problem, node_problem, small_config
from tests.transcription import Graph

CONFIGS: dict[str, Config] = {
    "evolve": {},
    "freeze": {"after_exit": "freeze"},
    "mean step": {"step_size": "mean"},
    "fixed step": {"step_size": 0.7},
    "two head layers": {"head_layers": 2},
    "dropout": {"dropout": 0.5},
}
SEED = 77


def inputs(graph: Graph) -> tuple[Tensor, Tensor, None, Tensor | None]:
    return features(SEED, graph.num_nodes), graph.edge_index(), None, graph.batch()


def assert_rows_are_depths(model: EEGNN, found: LayerOutputs, given: tuple[Any, ...]) -> None:
    """A row is the decoded state if everyone is stopped at its layer, and nobody before."""
    assert found.out.size(0) == model.num_layers
    for layer, row in enumerate(found.out, start=1):
        truth, _ = model.predict(*given, max_layers=layer, exit_threshold=1.0)
        torch.testing.assert_close(row, truth, rtol=0, atol=1e-12)


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@pytest.mark.parametrize("name", GRAPHS)
def test_nodes_are_decoded_at_every_depth(name: str, config: Config) -> None:
    model, given = make(SEED, **config), inputs(GRAPHS[name](SEED))
    assert_rows_are_depths(model, outputs_by_layer(model, *given), given)


@pytest.mark.parametrize("config", ["evolve", "freeze"])
@pytest.mark.parametrize("pool", ["mean", "add", "max"])
@pytest.mark.parametrize("confidence", ["mlp", "mean"])
def test_graphs_are_decoded_at_every_depth(pool: str, confidence: str, config: str) -> None:
    model = make(SEED, level="graph", pool=pool, confidence=confidence, **CONFIGS[config])
    given = inputs(batch_of_graphs(SEED))
    assert_rows_are_depths(model, outputs_by_layer(model, *given), given)


@pytest.mark.parametrize("level", ["node", "graph"])
def test_the_outputs_of_all_layers_are_those_of_algorithm_1(level: Any) -> None:
    graph, model = batch_of_graphs(SEED), make(SEED, level=level)
    found = outputs_by_layer(model, *inputs(graph))
    for layer, row in enumerate(found.out, start=1):
        truth = transcription.run(
            transcription.read(model),
            graph,
            features(SEED, graph.num_nodes).numpy(),
            num_layers=L,
            level=level,
            max_layers=layer,
            exit_threshold=1.0,
        )
        assert set(truth.layer) == {layer}
        np.testing.assert_allclose(row, truth.output, rtol=0, atol=1e-10)


def survival_of(model: EEGNN, graph: Graph) -> Tensor:
    found = outputs_by_layer(model, *inputs(graph)).log_stay
    assert found is not None
    return found.exp()


def test_survival_is_the_product_of_the_probabilities_of_continue() -> None:
    graph, model = connected_or_not(SEED), make(SEED)
    weights, x = transcription.read(model), features(SEED, graph.num_nodes).numpy()
    states = transcription.run(weights, graph, x, num_layers=L, exit_threshold=1.0).states
    logits = np.stack([weights.confidence(h, graph) for h in states[:-1]])
    continues = 1 / (1 + np.exp(logits[..., 1] - logits[..., 0]))
    truth = np.cumprod(continues, axis=0)
    np.testing.assert_allclose(survival_of(model, graph), truth, rtol=0, atol=1e-10)


def test_survival_does_not_depend_on_the_temperature() -> None:
    # A fixed step: otherwise the temperature reaches the states through τ.
    cold, warm = (make(SEED, nu0=nu0, step_size=0.5) for nu0 in (0.1, 5.0))
    graph = connected_or_not(SEED)
    assert torch.equal(survival_of(cold, graph), survival_of(warm, graph))


@pytest.mark.parametrize("shared", [True, False])
def test_a_model_of_fixed_depth_is_decoded_at_every_depth(shared: bool) -> None:
    deep = build("SASGNN", shared=shared)
    found = outputs_by_layer(deep, node_features(), EDGE_INDEX)
    assert found.log_stay is None
    weights = deep.state_dict()
    for layer in range(1, 7):
        shallow = SASGNN(5, 8, 3, layer, shared=shared)
        shallow.load_state_dict({k: v for k, v in weights.items() if k in shallow.state_dict()})
        assert torch.equal(found.out[layer - 1], shallow.predict(node_features(), EDGE_INDEX)[0])
    assert found.out.size(0) == 6
    assert (found.own_layer == 6).all()
    assert torch.equal(found.own_out, found.out[-1])


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_the_own_rule_is_that_of_predict(config: Config) -> None:
    model, given = make(SEED, **config), inputs(connected_or_not(SEED))
    found = outputs_by_layer(model, *given)
    out, exits = model.predict(*given)
    assert torch.equal(found.own_out, out)
    assert torch.equal(found.own_layer, exits.layer)
    assert found.replayable == (config.get("after_exit") != "freeze")


def test_graphs_that_freeze_can_be_replayed() -> None:
    model = make(SEED, level="graph", **CONFIGS["freeze"])
    assert outputs_by_layer(model, *inputs(batch_of_graphs(SEED))).replayable


@pytest.mark.parametrize("kind", BOTH)
def test_edge_features_and_adjacencies_are_taken(kind: str) -> None:
    model = build(kind, edge_dim=2, edge_term="relu")
    adj = Adjacency.from_edge_index(EDGE_INDEX, NUM_NODES)
    found = outputs_by_layer(model, node_features(), adj, edge_features())
    knobs: dict[str, Any] = {"exit_threshold": 1.0} if kind == "EEGNN" else {}
    truth, _ = model.predict(node_features(), EDGE_INDEX, edge_features(), **knobs)
    assert torch.equal(found.out[-1], truth)
    others = outputs_by_layer(model, node_features(), adj, edge_features(seed=9))
    assert not torch.equal(others.out[-1], truth)


def test_the_model_is_left_as_it_was() -> None:
    model = build("EEGNN", dropout=0.5).train()
    before = torch.get_rng_state()
    first, second = (outputs_by_layer(model, node_features(), EDGE_INDEX) for _ in range(2))
    assert torch.equal(first.out, second.out)
    assert not first.out.requires_grad
    assert model.training
    assert torch.equal(torch.get_rng_state(), before)
    with pytest.raises(ValueError, match="x must have shape"):
        outputs_by_layer(model, node_features(channels=4), EDGE_INDEX)
    assert isinstance(model, EEGNN)
    assert not model.loop._forward_pre_hooks


def made(problem: Problem) -> GraphModel:
    torch.manual_seed(0)
    return undecided(build_model(small_config(), problem), problem)


def test_outputs_at_chosen_layers() -> None:
    out = torch.arange(12.0).view(3, 2, 2)
    nothing = torch.zeros(2, 2), torch.zeros(2, dtype=torch.int64)
    outputs = LayerOutputs(out, None, *nothing)
    assert outputs.at(torch.tensor([3, 1])).tolist() == [[8.0, 9.0], [2.0, 3.0]]
    assert outputs.select(torch.tensor([1])).at(torch.tensor([2])).tolist() == [[6.0, 7.0]]


def test_nodes_of_a_part_are_those_of_the_graph() -> None:
    problem = node_problem()
    model, graph = made(problem), problem.graphs[0]
    found = outputs_by_part(model, Batches(problem, 1), ("val", "test"))
    everyone = outputs_by_layer(model, graph.x, graph.edge_index)
    assert everyone.log_stay is not None
    for name, index in (("val", problem.val), ("test", problem.test)):
        outputs, y = found[name]
        assert torch.equal(outputs.out, everyone.out[:, index])
        assert outputs.log_stay is not None
        assert torch.equal(outputs.log_stay, everyone.log_stay[:, index])
        assert torch.equal(outputs.own_out, everyone.own_out[index])
        assert torch.equal(outputs.own_layer, everyone.own_layer[index])
        assert torch.equal(y, graph.y[index])


@pytest.mark.parametrize("size", [1, 4, 100])
def test_graphs_of_a_part_come_in_its_order(size: int) -> None:
    problem = graph_problem()
    model = made(problem)
    outputs, y = outputs_by_part(model, Batches(problem, size), ("val",))["val"]
    assert outputs.own_layer.unique().numel() > 1
    assert outputs.log_stay is not None
    for unit, i in enumerate(problem.val.tolist()):
        graph = problem.graphs[i]
        alone = outputs_by_layer(model, graph.x, graph.edge_index)
        assert alone.log_stay is not None
        torch.testing.assert_close(outputs.out[:, unit], alone.out[:, 0], atol=1e-5, rtol=0)
        torch.testing.assert_close(
            outputs.log_stay[:, unit], alone.log_stay[:, 0], atol=1e-5, rtol=0
        )
        torch.testing.assert_close(outputs.own_out[unit], alone.own_out[0], atol=1e-5, rtol=0)
        assert outputs.own_layer[unit] == alone.own_layer[0]
        assert y[unit] == graph.y
