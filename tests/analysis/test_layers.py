from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from eegnn import EEGNN, SASGNN, Adjacency
from eegnn.analysis.layers import LayerOutputs, has_exits, outputs_by_layer, outputs_by_part
from eegnn.nn.model import GraphModel
from eegnn.train.batches import Batches
from eegnn.train.models import build_model
from eegnn.zoo.gcn import GCN
from tests import transcription
from tests.analysis.runs import UNDECIDED
from tests.nn.exit_examples import (
    EXPECTED,
    GRAPHS,
    SAMPLED,
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
    "expected": EXPECTED,
    "averaged": {**EXPECTED, "objective": "averaged"},
    "sampled": SAMPLED,
    "freeze": {**EXPECTED, "after_exit": "freeze"},
    "mean step": {**EXPECTED, "step_size": "mean"},
    "fixed step": {**EXPECTED, "step_size": 0.7},
    "head norm": {**EXPECTED, "head_norm": True},
    "dropout": {**EXPECTED, "dropout": 0.5, "conv_dropout": 0.5},
}
SEED = 77


def inputs(graph: Graph) -> tuple[Tensor, Tensor, None, Tensor | None]:
    return features(SEED, graph.num_nodes), graph.edge_index(), None, graph.batch()


def assert_rows_are_depths(model: EEGNN, found: LayerOutputs, given: tuple[Any, ...]) -> None:
    """Row l is the decoded state if everyone is stopped at l, and nobody before."""
    assert found.out.size(0) == model.num_layers + 1
    model.loop.answer = "state"
    for layer, row in enumerate(found.out):
        truth, _ = model.predict(*given, max_layers=layer, exit_threshold=1.0)
        torch.testing.assert_close(row, truth, rtol=0, atol=1e-12)


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@pytest.mark.parametrize("name", GRAPHS)
def test_nodes_are_decoded_at_every_depth(name: str, config: Config) -> None:
    model, given = make(SEED, **config), inputs(GRAPHS[name](SEED))
    assert_rows_are_depths(model, outputs_by_layer(model, *given), given)


@pytest.mark.parametrize("config", ["expected", "sampled", "freeze"])
@pytest.mark.parametrize("pool", ["mean", "add", "max"])
@pytest.mark.parametrize("confidence", ["mlp", "mean"])
def test_graphs_are_decoded_at_every_depth(pool: str, confidence: str, config: str) -> None:
    model = make(SEED, level="graph", pool=pool, confidence=confidence, **CONFIGS[config])
    given = inputs(batch_of_graphs(SEED))
    assert_rows_are_depths(model, outputs_by_layer(model, *given), given)


@pytest.mark.parametrize("level", ["node", "graph"])
def test_survival_is_the_product_of_the_step_sizes(level: Any) -> None:
    graph = batch_of_graphs(SEED)
    model = make(SEED, level=level, **EXPECTED)
    found = outputs_by_layer(model, *inputs(graph))
    truth = transcription.run(
        transcription.read(model),
        graph,
        features(SEED, graph.num_nodes).numpy(),
        num_layers=L,
        level=level,
        head_norm=False,
        exit_threshold=1.0,
    )
    assert found.log_stay is not None
    np.testing.assert_allclose(found.log_stay.exp(), np.cumprod(truth.tau, axis=0), atol=1e-10)


def test_survival_of_a_sampled_exit_does_not_depend_on_the_temperature() -> None:
    def survival(nu0: float) -> Tensor:
        # A fixed step: otherwise the temperature reaches the states through τ.
        model = make(SEED, nu0=nu0, step_size=0.5, **SAMPLED)
        found = outputs_by_layer(model, *inputs(connected_or_not(SEED))).log_stay
        assert found is not None
        return found

    assert torch.equal(survival(0.1), survival(5.0))


@pytest.mark.parametrize("shared", [True, False])
def test_a_model_of_fixed_depth_is_decoded_at_every_depth(shared: bool) -> None:
    deep = build("SASGNN", shared=shared)
    found = outputs_by_layer(deep, node_features(), EDGE_INDEX)
    assert found.log_stay is None
    weights = deep.state_dict()
    for layer in range(1, 7):
        shallow = SASGNN(5, 8, 3, layer, shared=shared)
        shallow.load_state_dict({k: v for k, v in weights.items() if k in shallow.state_dict()})
        assert torch.equal(found.out[layer], shallow.predict(node_features(), EDGE_INDEX)[0])
    assert torch.equal(found.out[0], deep.decoder(deep.encoder(node_features())))
    assert (found.own_layer == 6).all()
    assert torch.equal(found.own_out, found.out[-1])


def test_who_has_exits() -> None:
    assert has_exits(build("EEGNN"))
    assert not has_exits(build("SASGNN"))
    assert not has_exits(GCN(3, 4, 2))


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
    own: dict[str, Any] = {"answer": "state"} if kind == "EEGNN" else {}
    model = build(kind, edge_dim=2, edge_term="relu", **own)
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


def undecided(problem: Any, **options: Any) -> GraphModel:
    torch.manual_seed(0)
    return build_model(small_config(options={**UNDECIDED, **options}), problem)


def test_outputs_at_chosen_layers() -> None:
    out = torch.arange(12.0).view(3, 2, 2)
    nothing = torch.zeros(2, 2), torch.zeros(2, dtype=torch.int64)
    outputs = LayerOutputs(out, None, *nothing)
    assert outputs.at(torch.tensor([2, 0])).tolist() == [[8.0, 9.0], [2.0, 3.0]]
    assert outputs.of(torch.tensor([1])).at(torch.tensor([1])).tolist() == [[6.0, 7.0]]


def test_nodes_of_a_part_are_those_of_the_graph() -> None:
    problem = node_problem()
    model, graph = undecided(problem), problem.graphs[0]
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
    model = undecided(problem, head_scale=20.0)
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
