"""The exit loop against a transcription of Algorithms 1 and 2."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from eegnn import EEGNN, Exits, load, save
from tests import transcription
from tests.nn.exit_examples import (
    EXPECTED,
    GRAPHS,
    SAMPLED,
    SEEDS,
    Config,
    L,
    batch_of_graphs,
    connected_or_not,
    disconnected,
    features,
    make,
)
from tests.transcription import Graph

Array = NDArray[np.float64]


def noise(seed: int, units: int, layers: int = L) -> Array:
    """The numbers g(0) - g(1) that the library draws after ``torch.manual_seed(seed)``."""
    torch.manual_seed(seed)
    drawn = np.zeros((layers, units))
    for layer in range(layers):
        u = torch.rand(units, dtype=torch.float64).numpy()
        drawn[layer] = np.log(u) - np.log1p(-u)
    return drawn


def transcribed(model: EEGNN, graph: Graph, x: Tensor, **options: Any) -> transcription.Outcome:
    loop = model.loop
    return transcription.run(
        transcription.read(model),
        graph,
        x.numpy(),
        num_layers=model.num_layers,
        level=model.level,
        pool=model.pool,
        objective=loop.objective,
        after_exit=loop.after_exit,
        answer=loop.answer,
        step_size=loop.step_size,
        hard=loop.hard,
        head_norm=loop.head_norm,
        task=model.task,
        edge_term=loop.step.edge_term,
        **options,
    )


def assert_same(out: Tensor, exits: Exits, truth: transcription.Outcome) -> None:
    assert exits.layer.tolist() == truth.layer
    np.testing.assert_allclose(exits.time.detach(), truth.time, rtol=0, atol=1e-10)
    assert exits.tau.shape == truth.tau.shape
    np.testing.assert_allclose(exits.tau.detach(), truth.tau, rtol=0, atol=1e-10)
    np.testing.assert_allclose(out.detach(), truth.output, rtol=0, atol=1e-10)
    assert exits.cost.item() == pytest.approx(truth.cost, abs=1e-10)


NODE_CONFIGS: dict[str, Config] = {
    "default": {},
    "freeze": {"after_exit": "freeze"},
    "mean step": {"step_size": "mean"},
    "mean step, freeze": {"step_size": "mean", "after_exit": "freeze"},
    "fixed step": {"step_size": 0.7},
    "state": {"answer": "state"},
    "fixed step, freeze": {"step_size": 0.7, "after_exit": "freeze"},
    "no head norm": {"head_norm": False},
    "two-layer heads": {"head_layers": 2, "head_channels": 4},
    "mlp heads": {"confidence": "mlp", "temperature": "mlp"},
    "paper storage": {"storage": "paper", "decoder_layers": 2, "decoder_bias": True},
}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("shape", GRAPHS)
@pytest.mark.parametrize("objective", [SAMPLED, EXPECTED], ids=["sampled", "expected"])
@pytest.mark.parametrize("name", NODE_CONFIGS)
def test_evaluation_is_algorithm_1(name: str, objective: Config, shape: str, seed: int) -> None:
    graph = GRAPHS[shape](seed)
    model = make(seed, **{**objective, **NODE_CONFIGS[name]}).eval()
    x = features(seed, graph.num_nodes)
    truth = transcribed(model, graph, x)
    assert_same(*model.predict(x, graph.edge_index()), truth)
    out, exits = model(x, graph.edge_index(), return_exits=True)
    assert_same(out, exits, truth)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("shape", GRAPHS)
@pytest.mark.parametrize("name", [*NODE_CONFIGS, "hard"])
def test_sampled_training_is_algorithm_1_with_gumbel_noise(
    name: str, shape: str, seed: int
) -> None:
    graph = GRAPHS[shape](seed)
    config = {"hard": True} if name == "hard" else NODE_CONFIGS[name]
    model = make(seed, **{**SAMPLED, **config})
    x = features(seed, graph.num_nodes)
    drawn = noise(77 + seed, graph.num_nodes)
    torch.manual_seed(77 + seed)
    out, exits = model(x, graph.edge_index(), return_exits=True)
    assert_same(out, exits, transcribed(model, graph, x, training=True, noise=drawn))
    if name == "hard":
        assert set(exits.tau.flatten().tolist()) == {0.0, 1.0}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("after_exit", ["evolve", "freeze"])
def test_noise_at_evaluation_is_an_option(after_exit: str, seed: int) -> None:
    graph = connected_or_not(seed)
    model = make(seed, **SAMPLED, after_exit=after_exit)
    x, drawn = features(seed, graph.num_nodes), noise(9, graph.num_nodes)
    torch.manual_seed(9)
    out, exits = model.predict(x, graph.edge_index(), sample=True)
    assert_same(out, exits, transcribed(model, graph, x, noise=drawn))
    assert model.training  # predict gives the mode back


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("task", ["classification", "multilabel", "regression"])
@pytest.mark.parametrize("shape", GRAPHS)
@pytest.mark.parametrize("name", ["default", "freeze", "mean step", "fixed step", "no head norm"])
def test_expected_training_is_the_mixture_over_exits(
    name: str, shape: str, task: str, seed: int
) -> None:
    graph = GRAPHS[shape](seed)
    model = make(seed, **{**EXPECTED, "task": task, **NODE_CONFIGS[name]})
    x = features(seed, graph.num_nodes)
    out, exits = model(x, graph.edge_index(), return_exits=True)
    assert_same(out, exits, transcribed(model, graph, x, training=True))
    if task == "classification":
        ones = torch.ones(graph.num_nodes, dtype=torch.float64)
        torch.testing.assert_close(out.exp().sum(-1), ones, rtol=0, atol=1e-12)


GRAPH_CONFIGS: dict[str, Config] = {
    "mean": {},
    "add": {"pool": "add"},
    "max": {"pool": "max"},
    "freeze": {"after_exit": "freeze"},
    "fixed step": {"step_size": 0.7},
    "no head norm": {"head_norm": False},
    "head reads neighbours": {"confidence": "mean", "pool": "add"},
    "two-layer heads": {"head_layers": 2, "head_channels": 4},
}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("objective", [SAMPLED, EXPECTED], ids=["sampled", "expected"])
@pytest.mark.parametrize("name", GRAPH_CONFIGS)
def test_evaluation_is_algorithm_2(name: str, objective: Config, seed: int) -> None:
    graph = batch_of_graphs(seed)
    model = make(seed, level="graph", **{**objective, **GRAPH_CONFIGS[name]}).eval()
    x = features(seed, graph.num_nodes)
    out, exits = model.predict(x, graph.edge_index(), batch=graph.batch())
    assert_same(out, exits, transcribed(model, graph, x))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("objective", [SAMPLED, EXPECTED], ids=["sampled", "expected"])
@pytest.mark.parametrize("name", GRAPH_CONFIGS)
def test_training_is_algorithm_2(name: str, objective: Config, seed: int) -> None:
    graph = batch_of_graphs(seed)
    model = make(seed, level="graph", **{**objective, **GRAPH_CONFIGS[name]})
    x = features(seed, graph.num_nodes)
    drawn = noise(seed, graph.num_graphs) if objective is SAMPLED else None
    torch.manual_seed(seed)
    out, exits = model(x, graph.edge_index(), batch=graph.batch(), return_exits=True)
    assert_same(out, exits, transcribed(model, graph, x, training=True, noise=drawn))


@pytest.mark.parametrize("training", [False, True], ids=["evaluation", "training"])
@pytest.mark.parametrize("objective", [SAMPLED, EXPECTED], ids=["sampled", "expected"])
def test_a_graph_without_batch_is_one_unit(objective: Config, training: bool) -> None:
    graph = disconnected(1)
    model = make(1, level="graph", **objective).train(training)
    x = features(1, graph.num_nodes)
    drawn = noise(4, 1) if training and objective is SAMPLED else None
    torch.manual_seed(4)
    out, exits = model(x, graph.edge_index(), return_exits=True)
    assert_same(out, exits, transcribed(model, graph, x, training=training, noise=drawn))


@pytest.mark.parametrize("objective", [SAMPLED, EXPECTED], ids=["sampled", "expected"])
@pytest.mark.parametrize("level", ["node", "graph"])
def test_comparisons_cover_every_kind_of_exit(level: str, objective: Config) -> None:
    layers: set[int] = set()
    for seed in SEEDS:
        graph = batch_of_graphs(seed)
        model = make(seed, level=level, **objective)
        x = features(seed, graph.num_nodes)
        _, exits = model.predict(x, graph.edge_index(), batch=graph.batch())
        layers |= set(exits.layer.tolist())
    assert {0, L} <= layers
    assert len(layers) >= 4


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("training", [False, True], ids=["evaluation", "training"])
@pytest.mark.parametrize("objective", [SAMPLED, EXPECTED], ids=["sampled", "expected"])
@pytest.mark.parametrize("level", ["node", "graph"])
@pytest.mark.parametrize("edge_term", ["linear", "relu"])
def test_edge_features_enter_every_step(
    edge_term: str, level: str, objective: Config, training: bool, seed: int
) -> None:
    graph = batch_of_graphs(seed)
    model = make(seed, level=level, edge_dim=2, edge_term=edge_term, **objective).train(training)
    x, attr = features(seed, graph.num_nodes), features(9 + seed, len(graph.edges), 2)
    units = graph.num_nodes if level == "node" else graph.num_graphs
    drawn = noise(3, units) if training and objective is SAMPLED else None
    truth = transcribed(model, graph, x, training=training, noise=drawn, edge_features=attr.numpy())
    both_directions = torch.cat([attr, attr])
    torch.manual_seed(3)
    with torch.set_grad_enabled(training):
        out, exits = model(
            x, graph.edge_index(), both_directions, batch=graph.batch(), return_exits=True
        )
    assert_same(out, exits, truth)


@pytest.mark.parametrize("max_layers", [0, 1, 3, L, L + 5])
@pytest.mark.parametrize("objective", [SAMPLED, EXPECTED], ids=["sampled", "expected"])
@pytest.mark.parametrize("level", ["node", "graph"])
def test_max_layers_stops_everyone(level: str, objective: Config, max_layers: int) -> None:
    graph = batch_of_graphs(2)
    model = make(2, level=level, **objective)
    x = features(2, graph.num_nodes)
    out, exits = model.predict(x, graph.edge_index(), batch=graph.batch(), max_layers=max_layers)
    assert_same(out, exits, transcribed(model, graph, x, max_layers=max_layers))
    assert int(exits.layer.max()) == min(max_layers, L)


THRESHOLDS = [0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 1.0]


@pytest.mark.parametrize("threshold", THRESHOLDS)
@pytest.mark.parametrize("objective", [SAMPLED, EXPECTED], ids=["sampled", "expected"])
@pytest.mark.parametrize("level", ["node", "graph"])
def test_units_leave_once_their_probability_reaches_the_threshold(
    level: str, objective: Config, threshold: float
) -> None:
    graph = batch_of_graphs(0)
    model = make(0, level=level, **objective)
    x = features(0, graph.num_nodes)
    out, exits = model.predict(x, graph.edge_index(), batch=graph.batch(), exit_threshold=threshold)
    assert_same(out, exits, transcribed(model, graph, x, exit_threshold=threshold))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("objective", [SAMPLED, EXPECTED], ids=["sampled", "expected"])
@pytest.mark.parametrize("level", ["node", "graph"])
def test_a_higher_threshold_never_makes_a_unit_leave_earlier(
    level: str, objective: Config, seed: int
) -> None:
    graph = batch_of_graphs(seed)
    model = make(seed, level=level, **objective)
    x = features(seed, graph.num_nodes)
    layers = [
        model.predict(x, graph.edge_index(), batch=graph.batch(), exit_threshold=t)[1].layer
        for t in THRESHOLDS
    ]
    for lower, higher in itertools.pairwise(layers):
        assert (lower <= higher).all()
    assert (layers[0] == 0).all()
    assert (layers[-1] == L).all()
    assert len({tuple(layer.tolist()) for layer in layers}) >= 4


def test_default_rule_of_the_expected_exit_is_the_threshold_one_half_without_doubt() -> None:
    graph, model = connected_or_not(0), make(0, **EXPECTED, task="regression")
    x = features(0, graph.num_nodes)
    own, half = (model.predict(x, graph.edge_index(), exit_threshold=t) for t in (None, 0.5))
    assert torch.equal(own[0], half[0])
    assert torch.equal(own[1].layer, half[1].layer)


@pytest.mark.parametrize("answer", ["state", "mixture"])
@pytest.mark.parametrize("level", ["node", "graph"])
def test_who_is_sure_leaves_earlier(level: str, answer: str) -> None:
    graph = batch_of_graphs(4)
    of_values, of_classes = (
        make(4, **EXPECTED, answer=answer, level=level, task=task)
        for task in ("regression", "classification")
    )
    x, found = features(4, graph.num_nodes), set()
    for threshold in THRESHOLDS:
        given: Config = {"batch": graph.batch(), "exit_threshold": threshold}
        late, early = (
            model.predict(x, graph.edge_index(), **given)[1].layer
            for model in (of_values, of_classes)
        )
        assert (early <= late).all()
        found.add(bool((early < late).any()))
    assert found == {False, True}


@pytest.mark.parametrize("objective", [SAMPLED, EXPECTED], ids=["sampled", "expected"])
@pytest.mark.parametrize("level", ["node", "graph"])
def test_the_threshold_of_the_constructor_is_the_rule_where_none_is_asked_for(
    level: str, objective: Config, tmp_path: Path
) -> None:
    graph = batch_of_graphs(0)
    given = features(0, graph.num_nodes), graph.edge_index(), None, graph.batch()
    plain = make(0, level=level, **objective)
    model = make(0, level=level, exit_threshold=0.7, **objective)
    save(model, tmp_path / "model.safetensors")
    wanted, exits = plain.predict(*given, exit_threshold=0.7)
    assert not torch.equal(exits.layer, plain.predict(*given)[1].layer)
    for one in (model, load(tmp_path / "model.safetensors")):
        out, own = one.predict(*given)
        assert torch.equal(own.layer, exits.layer)
        assert torch.equal(out, wanted)
    never, _ = plain.predict(*given, exit_threshold=1.0)
    assert torch.equal(model.predict(*given, exit_threshold=1.0)[0], never)


@pytest.mark.parametrize("after_exit", ["evolve", "freeze"])
@pytest.mark.parametrize("objective", [SAMPLED, EXPECTED], ids=["sampled", "expected"])
def test_training_does_not_know_the_threshold_of_the_constructor(
    objective: Config, after_exit: str
) -> None:
    graph = batch_of_graphs(3)
    x, found = features(3, graph.num_nodes), []
    for threshold in (None, 0.7):
        model = make(3, exit_threshold=threshold, after_exit=after_exit, **objective)
        torch.manual_seed(3)
        found.append(model(x, graph.edge_index(), return_exits=True))
    (out, exits), (same, others) = found
    assert torch.equal(out, same)
    assert torch.equal(exits.layer, others.layer)


@pytest.mark.parametrize(
    ("value", "error"), [(-0.1, ValueError), (1.5, ValueError), ("0.5", TypeError)]
)
def test_the_threshold_of_the_constructor_is_checked(value: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="exit_threshold must be"):
        make(0, exit_threshold=value)
