"""The exit loop against a transcription of Algorithms 1 and 2."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from eegnn import EEGNN, Adjacency, Exits
from tests import transcription
from tests.nn.exit_examples import (
    GRAPHS,
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
LEVELS = pytest.mark.parametrize("level", ["node", "graph"])
EACH_SEED = pytest.mark.parametrize("seed", SEEDS)


def noise(seed: int, units: int, layers: int = L) -> Array:
    """The numbers g(0) - g(1) that the library draws after ``torch.manual_seed(seed)``."""
    torch.manual_seed(seed)
    drawn = np.zeros((layers, units))
    for layer in range(layers):
        u = torch.rand(units, dtype=torch.float64).numpy()
        drawn[layer] = np.log(u) - np.log1p(-u)
    return drawn


def transcribed(model: EEGNN, graph: Graph, x: Tensor, **options: Any) -> transcription.Outcome:
    return transcription.run(
        transcription.read(model),
        graph,
        x.numpy(),
        num_layers=model.num_layers,
        level=model.level,
        pool=model.pool,
        after_exit=model.loop.after_exit,
        step_size=model.loop.step_size,
        **options,
    )


def assert_same(out: Tensor, exits: Exits, truth: transcription.Outcome) -> None:
    assert exits.layer.tolist() == truth.layer
    np.testing.assert_allclose(exits.time, truth.time, rtol=0, atol=1e-10)
    assert exits.tau.shape == truth.tau.shape
    np.testing.assert_allclose(exits.tau, truth.tau, rtol=0, atol=1e-10)
    np.testing.assert_allclose(out.detach(), truth.output, rtol=0, atol=1e-10)
    assert exits.cost.item() == pytest.approx(truth.cost, abs=1e-10)


NODE_CONFIGS: dict[str, Config] = {
    "default": {},
    "freeze": {"after_exit": "freeze"},
    "mean step": {"step_size": "mean"},
    "mean step, freeze": {"step_size": "mean", "after_exit": "freeze"},
    "fixed step": {"step_size": 0.7},
    "fixed step, freeze": {"step_size": 0.7, "after_exit": "freeze"},
    "two-layer heads": {"head_layers": 2, "head_channels": 4},
    "mlp heads": {"confidence": "mlp"},
    "sas heads": {"confidence": "sas", "head_layers": 2, "head_channels": 4},
    "paper storage": {"storage": "paper", "decoder_layers": 2},
}


@EACH_SEED
@pytest.mark.parametrize("shape", GRAPHS)
@pytest.mark.parametrize("name", NODE_CONFIGS)
def test_evaluation_is_algorithm_1(name: str, shape: str, seed: int) -> None:
    graph = GRAPHS[shape](seed)
    model = make(seed, **NODE_CONFIGS[name]).eval()
    x = features(seed, graph.num_nodes)
    truth = transcribed(model, graph, x)
    assert_same(*model.predict(x, graph.edge_index()), truth)
    out, exits = model(x, graph.edge_index(), return_exits=True)
    assert_same(out, exits, truth)


@EACH_SEED
@pytest.mark.parametrize("shape", GRAPHS)
@pytest.mark.parametrize("name", NODE_CONFIGS)
def test_training_is_algorithm_1_with_gumbel_noise(name: str, shape: str, seed: int) -> None:
    graph = GRAPHS[shape](seed)
    model = make(seed, **NODE_CONFIGS[name])
    x, drawn = features(seed, graph.num_nodes), noise(77 + seed, graph.num_nodes)
    torch.manual_seed(77 + seed)
    out, exits = model(x, graph.edge_index(), return_exits=True)
    assert_same(out, exits, transcribed(model, graph, x, training=True, noise=drawn))


GRAPH_CONFIGS: dict[str, Config] = {
    "mean": {},
    "add": {"pool": "add"},
    "max": {"pool": "max"},
    "concat": {"pool": "concat"},
    "freeze": {"after_exit": "freeze"},
    "fixed step": {"step_size": 0.7},
    "head reads neighbours": {"confidence": "mean", "pool": "add"},
    "sas heads": {"confidence": "sas", "head_channels": 4},
    "two-layer heads": {"head_layers": 2, "head_channels": 4},
}


@EACH_SEED
@pytest.mark.parametrize("training", [False, True], ids=["evaluation", "training"])
@pytest.mark.parametrize("name", GRAPH_CONFIGS)
def test_graphs_follow_algorithm_2(name: str, training: bool, seed: int) -> None:
    graph = batch_of_graphs(seed)
    model = make(seed, level="graph", **GRAPH_CONFIGS[name]).train(training)
    x = features(seed, graph.num_nodes)
    drawn = noise(seed, graph.num_graphs) if training else None
    torch.manual_seed(seed)
    out, exits = model(x, graph.edge_index(), batch=graph.batch(), return_exits=True)
    assert_same(out, exits, transcribed(model, graph, x, training=training, noise=drawn))


@pytest.mark.parametrize("training", [False, True], ids=["evaluation", "training"])
def test_a_graph_without_batch_is_one_unit(training: bool) -> None:
    graph = disconnected(1)
    model = make(1, level="graph").train(training)
    x = features(1, graph.num_nodes)
    drawn = noise(4, 1) if training else None
    torch.manual_seed(4)
    out, exits = model(x, graph.edge_index(), return_exits=True)
    assert_same(out, exits, transcribed(model, graph, x, training=training, noise=drawn))


@LEVELS
def test_comparisons_cover_every_kind_of_exit(level: str) -> None:
    layers: set[int] = set()
    for seed in SEEDS:
        graph = batch_of_graphs(seed)
        x = features(seed, graph.num_nodes)
        _, exits = make(seed, level=level).predict(x, graph.edge_index(), batch=graph.batch())
        layers |= set(exits.layer.tolist())
    assert layers == set(range(1, L + 1))


@EACH_SEED
@pytest.mark.parametrize("training", [False, True], ids=["evaluation", "training"])
@LEVELS
@pytest.mark.parametrize("edge_term", ["linear", "relu"])
def test_edge_features_enter_every_step(
    edge_term: str, level: str, training: bool, seed: int
) -> None:
    graph = batch_of_graphs(seed)
    model = make(seed, level=level, edge_dim=2, edge_term=edge_term).train(training)
    x, attr = features(seed, graph.num_nodes), features(9 + seed, len(graph.edges), 2)
    units = graph.num_nodes if level == "node" else graph.num_graphs
    drawn = noise(3, units) if training else None
    truth = transcribed(model, graph, x, training=training, noise=drawn, edge_features=attr.numpy())
    both_directions = torch.cat([attr, attr])
    torch.manual_seed(3)
    out, exits = model(
        x, graph.edge_index(), both_directions, batch=graph.batch(), return_exits=True
    )
    assert_same(out, exits, truth)


@EACH_SEED
@pytest.mark.parametrize("after_exit", ["evolve", "freeze"])
def test_noise_at_evaluation_is_an_option(after_exit: str, seed: int) -> None:
    graph = connected_or_not(seed)
    model = make(seed, after_exit=after_exit)
    x, drawn = features(seed, graph.num_nodes), noise(9, graph.num_nodes)
    torch.manual_seed(9)
    out, exits = model.predict(x, graph.edge_index(), sample=True)
    assert_same(out, exits, transcribed(model, graph, x, noise=drawn))
    assert model.training  # predict gives the mode back


@pytest.mark.parametrize("max_layers", [1, 3, L, L + 5])
@LEVELS
def test_max_layers_stops_everyone(level: str, max_layers: int) -> None:
    graph = batch_of_graphs(43)
    model = make(43, level=level)
    x = features(43, graph.num_nodes)
    out, exits = model.predict(x, graph.edge_index(), batch=graph.batch(), max_layers=max_layers)
    assert_same(out, exits, transcribed(model, graph, x, max_layers=max_layers))
    assert int(exits.layer.max()) == min(max_layers, L)


THRESHOLDS = [0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 1.0]


@EACH_SEED
@LEVELS
def test_units_leave_once_their_probability_reaches_the_threshold(level: str, seed: int) -> None:
    graph = batch_of_graphs(seed)
    model = make(seed, level=level)
    x, layers = features(seed, graph.num_nodes), []
    for threshold in THRESHOLDS:
        out, exits = model.predict(
            x, graph.edge_index(), batch=graph.batch(), exit_threshold=threshold
        )
        assert_same(out, exits, transcribed(model, graph, x, exit_threshold=threshold))
        layers.append(exits.layer)
    for lower, higher in itertools.pairwise(layers):
        assert (lower <= higher).all()
    assert (layers[0] == 1).all()
    assert (layers[-1] == L).all()
    assert len({tuple(layer.tolist()) for layer in layers}) >= 4


@EACH_SEED
@pytest.mark.parametrize("after_exit", ["evolve", "freeze"])
@LEVELS
def test_observe_sees_the_states_before_the_first_step_and_after_each(
    level: str, after_exit: str, seed: int
) -> None:
    graph = batch_of_graphs(seed)
    model = make(seed, level=level, after_exit=after_exit).eval()
    x = features(seed, graph.num_nodes)
    adj = Adjacency.from_edge_index(graph.edge_index(), graph.num_nodes, graph.batch())
    states: list[Tensor] = []
    model.loop(model.encoder(x), adj, observe=lambda h, log_stay: states.append(h.detach()))
    truth = transcribed(model, graph, x)
    np.testing.assert_allclose(torch.stack(states), truth.states, rtol=0, atol=1e-10)
    left = torch.tensor(truth.layer) if level == "node" else torch.tensor(truth.layer)[adj.batch]
    moved = [not torch.equal(states[layer][i], states[-1][i]) for i, layer in enumerate(left)]
    assert any(moved) == (level == "node" and after_exit == "evolve")


@LEVELS
def test_trace_decodes_everyone_after_every_step(level: str) -> None:
    graph = batch_of_graphs(43)
    model = make(43, level=level).eval()
    x = features(43, graph.num_nodes)
    adj = Adjacency.from_edge_index(graph.edge_index(), graph.num_nodes, graph.batch())
    with torch.no_grad():
        out, log_stay = model.loop.trace(model.encoder(x), adj, readout=model.decoder)
    whole = transcribed(model, graph, x, exit_threshold=1.0)
    program = model.program(adj)
    seen = [program.units(torch.from_numpy(h), adj) for h in whole.states[:L]]
    logits = [model.loop.confidence(h, adj).detach().numpy() for h in seen]
    assert len(out) == len(log_stay) == len(logits) == L
    survival = np.ones(log_stay.size(1))
    for layer in range(L):
        stopped = transcribed(model, graph, x, max_layers=layer + 1, exit_threshold=1.0)
        np.testing.assert_allclose(out[layer], stopped.output, rtol=0, atol=1e-10)
        survival /= 1 + np.exp(logits[layer][:, 1] - logits[layer][:, 0])
        np.testing.assert_allclose(log_stay[layer].exp(), survival, rtol=1e-10)


def test_without_a_decoder_the_states_at_the_exit_come_back() -> None:
    graph = batch_of_graphs(43)
    model = make(43).eval()
    x = features(43, graph.num_nodes)
    adj = Adjacency.from_edge_index(graph.edge_index(), graph.num_nodes)
    states, exits = model.loop(model.encoder(x), adj)
    truth = transcribed(model, graph, x)
    assert exits.layer.tolist() == truth.layer
    at_exit = [truth.states[layer][i] for i, layer in enumerate(truth.layer)]
    np.testing.assert_allclose(states.detach(), at_exit, rtol=0, atol=1e-10)
