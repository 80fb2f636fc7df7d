"""The exit loop against a transcription of Algorithms 1 and 2, and against itself."""

from __future__ import annotations

import itertools
import os
import random
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import functional_call
from torch_geometric.nn import GATConv, GCNConv, SAGEConv

from eegnn import EEGNN, Adjacency, EarlyExit, Exits, SASConv
from eegnn.nn.heads import MLP, Confidence, MeanGNN, Temperature
from tests import transcription
from tests.transcription import Graph

Array = NDArray[np.float64]
Config = dict[str, Any]

L, IN, HIDDEN, OUT = 6, 3, 5, 3
#: Random weights often let everyone leave at the same end; with the last two of these seeds the
#: exits are spread, for nodes and graphs and both objectives.
SEEDS = [1, 4, 77]


def random_edges(rng: random.Random, nodes: list[int], p: float) -> list[tuple[int, int]]:
    return [(u, v) for u in nodes for v in nodes if u < v and rng.random() < p]


def connected_or_not(seed: int) -> Graph:
    return Graph(random_edges(random.Random(seed), list(range(11)), 0.3), 11)


def with_isolated_nodes(seed: int) -> Graph:
    return Graph(random_edges(random.Random(seed), list(range(2, 9)), 0.4), 11)


def disconnected(seed: int) -> Graph:
    rng = random.Random(seed)
    edges = random_edges(rng, [0, 1, 2, 3, 4], 0.6) + random_edges(rng, [5, 6, 7, 8], 0.6)
    return Graph(edges, 11)


def without_edges(seed: int) -> Graph:
    return Graph([], 5)


def batch_of_graphs(seed: int) -> Graph:
    """Graphs of 1 to 5 nodes, one of them without edges, and a number without nodes."""
    rng = random.Random(seed)
    edges: list[tuple[int, int]] = []
    graph_of: list[int] = []
    for g, size in enumerate([4, 1, 5, 0, 3, 2, 5, 4]):
        nodes = list(range(len(graph_of), len(graph_of) + size))
        edges += random_edges(rng, nodes, 0.0 if g == 4 else 0.7)
        graph_of += [g] * size
    return Graph(edges, len(graph_of), graph_of)


GRAPHS: dict[str, Callable[[int], Graph]] = {
    "random": connected_or_not,
    "isolated nodes": with_isolated_nodes,
    "disconnected": disconnected,
    "no edges": without_edges,
}

#: Arguments of EEGNN. The start of f_c is such that units leave everywhere between 0 and L.
SAMPLED: Config = {"objective": "sampled", "continue_bias": 1.0, "head_scale": 10.0}
EXPECTED: Config = {"objective": "expected", "continue_bias": 2.0, "head_scale": 20.0}


def make(seed: int, **config: Any) -> EEGNN:
    torch.manual_seed(seed)
    return EEGNN(IN, HIDDEN, OUT, **{"num_layers": L, "nu0": 0.3, **config}).double()


def confidence_of(model: EEGNN) -> Confidence:
    confidence = model.loop.confidence
    assert isinstance(confidence, Confidence)
    return confidence


def last_bias_gradient(model: EEGNN) -> Tensor:
    """The gradient that reaches the preference for *continue* and *exit*, ``[2]``."""
    gradient = dict(confidence_of(model).named_parameters())["head.lins.0.bias"].grad
    assert gradient is not None
    return gradient


def features(seed: int, rows: int, channels: int = IN) -> Tensor:
    generator = torch.Generator().manual_seed(500 + seed)
    return torch.randn(rows, channels, generator=generator, dtype=torch.float64)


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


def test_default_rule_of_the_expected_exit_is_the_threshold_one_half() -> None:
    graph, model = connected_or_not(0), make(0, **EXPECTED)
    x = features(0, graph.num_nodes)
    own, half = (model.predict(x, graph.edge_index(), exit_threshold=t) for t in (None, 0.5))
    assert torch.equal(own[0], half[0])
    assert torch.equal(own[1].layer, half[1].layer)


@pytest.mark.parametrize("seed", SEEDS[1:])
@pytest.mark.parametrize("edge_dim", [None, 2])
@pytest.mark.parametrize("objective", [SAMPLED, EXPECTED], ids=["sampled", "expected"])
def test_dropping_finished_graphs_changes_nothing(
    objective: Config, edge_dim: int | None, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = batch_of_graphs(seed)
    model = make(seed, level="graph", edge_dim=edge_dim, **objective)
    x = features(seed, graph.num_nodes)
    attr = None if edge_dim is None else features(9, len(graph.edges), 2)
    sizes: list[int] = []
    select_graphs = Adjacency.select_graphs

    def counted(self: Adjacency, graphs: Tensor) -> Adjacency:
        sizes.append(int(graphs.sum()))
        return select_graphs(self, graphs)

    monkeypatch.setattr(Adjacency, "select_graphs", counted)
    out, exits = model.predict(
        x,
        graph.edge_index(),
        None if attr is None else torch.cat([attr, attr]),
        graph.batch(),
    )
    assert sizes, "no graph was dropped: the test would show nothing"
    assert sizes == sorted(sizes, reverse=True)
    for g in range(graph.num_graphs):
        members = graph.members(g)
        if not members:
            continue
        first = members[0]
        inside = [k for k, (u, _) in enumerate(graph.edges) if u in members]
        edges = [(graph.edges[k][0] - first, graph.edges[k][1] - first) for k in inside]
        alone = Graph(edges, len(members))
        part = None if attr is None else torch.cat([attr[inside], attr[inside]])
        out_alone, exits_alone = model.predict(x[members], alone.edge_index(), part)
        torch.testing.assert_close(out[g], out_alone[0], rtol=0, atol=1e-12)
        assert exits.layer[g] == exits_alone.layer[0]
        torch.testing.assert_close(exits.time[g], exits_alone.time[0], rtol=0, atol=1e-12)
        steps = exits_alone.tau.size(0)
        torch.testing.assert_close(exits.tau[:steps, g], exits_alone.tau[:, 0])
        assert (exits.tau[steps:, g] == 0).all()


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("shape", GRAPHS)
@pytest.mark.parametrize("edge_dim", [None, 2])
@pytest.mark.parametrize("objective", [SAMPLED, EXPECTED], ids=["sampled", "expected"])
def test_computing_active_rows_only_changes_nothing(
    objective: Config, edge_dim: int | None, shape: str, seed: int
) -> None:
    graph = GRAPHS[shape](seed)
    model = make(seed, after_exit="freeze", edge_dim=edge_dim, **objective).eval()
    x = features(seed, graph.num_nodes)
    attr = None if edge_dim is None else features(9, 2 * len(graph.edges), 2)
    full, full_exits = model(x, graph.edge_index(), attr, return_exits=True)
    assert full.requires_grad  # so that every row was computed
    few, few_exits = model.predict(x, graph.edge_index(), attr)
    torch.testing.assert_close(few, full.detach(), rtol=0, atol=1e-12)
    assert torch.equal(few_exits.layer, full_exits.layer)
    torch.testing.assert_close(few_exits.tau, full_exits.tau, rtol=0, atol=1e-12)
    torch.testing.assert_close(few_exits.time, full_exits.time, rtol=0, atol=1e-12)


def test_frozen_evaluation_asks_for_active_rows_only(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, model = connected_or_not(0), make(0, after_exit="freeze", **SAMPLED)
    asked: list[int] = []
    propagate = Adjacency.propagate

    def counted(self: Adjacency, x: Tensor, norm: Any = "sym", rows: Any = None) -> Tensor:
        if norm == "sym":
            asked.append(-1 if rows is None else rows.numel())
        return propagate(self, x, norm, rows)

    monkeypatch.setattr(Adjacency, "propagate", counted)
    _, exits = model.predict(features(0, graph.num_nodes), graph.edge_index())
    active = [int((exits.layer > layer).sum()) for layer in range(len(exits.tau))]
    assert asked == active
    assert min(active) < graph.num_nodes


@pytest.mark.parametrize("after_exit", ["evolve", "freeze"])
def test_exited_nodes_keep_their_state_when_frozen_and_move_on_when_evolving(
    after_exit: str,
) -> None:
    graph, x = connected_or_not(4), features(4, 11)
    # Without head norm, so that the heads are shown the states themselves.
    model = make(4, after_exit=after_exit, head_norm=False, **SAMPLED).eval()
    states: list[Tensor] = []
    confidence_of(model).register_forward_pre_hook(
        lambda _, arguments: states.append(arguments[0].detach())
    )
    _, exits = model(x, graph.edge_index(), return_exits=True)
    moved = []
    for i, layer in enumerate(exits.layer.tolist()):
        if layer < len(states) - 1:
            moved.append(not torch.equal(states[layer][i], states[-1][i]))
    assert moved
    assert any(moved) == (after_exit == "evolve")


# --- Gradients ---------------------------------------------------------------------------------


def check_gradients(
    module: nn.Module, call: Callable[[nn.Module, dict[str, Tensor]], Tensor]
) -> None:
    """Compare the gradients of all parameters with central differences in float64."""
    names = [name for name, _ in module.named_parameters()]

    def function(*values: Tensor) -> Tensor:
        return call(module, dict(zip(names, values, strict=True)))

    values = tuple(p.detach().clone().requires_grad_() for p in module.parameters())
    assert torch.autograd.gradcheck(function, values, eps=1e-6, atol=1e-7, rtol=1e-5)


@pytest.mark.parametrize("storage", ["free", "paper"])
@pytest.mark.parametrize("edge_term", ["none", "linear", "relu"])
def test_gradients_of_a_step_agree_with_finite_differences(edge_term: Any, storage: Any) -> None:
    torch.manual_seed(0)
    graph = with_isolated_nodes(1)
    adj = Adjacency.from_edge_index(graph.edge_index(), graph.num_nodes)
    edge_dim = None if edge_term == "none" else 2
    conv = SASConv(4, edge_dim, edge_term, storage=storage).double()
    attr = None if edge_dim is None else features(1, 2 * len(graph.edges), 2)
    h = features(2, graph.num_nodes, 4).requires_grad_()
    check_gradients(conv, lambda m, p: functional_call(m, p, (h, adj, attr)))
    assert torch.autograd.gradcheck(lambda h: conv(h, adj, attr), (h,), atol=1e-7, rtol=1e-5)


#: Small, since finite differences run often; of unequal degrees, so that D⁻¹A is not symmetric.
SMALL = Graph([(0, 1), (1, 2), (1, 3), (2, 3), (5, 6)], 7, [0, 0, 0, 0, 1, 2, 2])


def output_and_cost(
    graph: Graph, x: Tensor, seed: int
) -> Callable[[nn.Module, dict[str, Tensor]], Tensor]:
    def call(model: nn.Module, parameters: dict[str, Tensor]) -> Tensor:
        torch.manual_seed(seed)  # the same noise at every evaluation
        out, exits = functional_call(
            model,
            parameters,
            (x, graph.edge_index()),
            {"batch": graph.batch(), "return_exits": True},
        )
        return torch.cat([out.flatten(), exits.cost.view(1)])

    return call


@pytest.mark.parametrize("level", ["node", "graph"])
@pytest.mark.parametrize("task", ["classification", "multilabel", "regression"])
def test_gradients_of_the_mixture_agree_with_finite_differences(task: str, level: str) -> None:
    model = make(4, num_layers=3, level=level, task=task, **EXPECTED)
    check_gradients(model, output_and_cost(SMALL, features(4, 7), 0))


@pytest.mark.parametrize("after_exit", ["evolve", "freeze"])
@pytest.mark.parametrize("level", ["node", "graph"])
def test_gradients_of_the_sampled_loop_agree_with_finite_differences(
    level: str, after_exit: str
) -> None:
    model = make(4, num_layers=3, level=level, after_exit=after_exit, **SAMPLED)
    x = features(4, 7)
    torch.manual_seed(6)
    exits = model(x, SMALL.edge_index(), batch=SMALL.batch(), return_exits=True)[1]
    assert len(exits.layer.unique()) > 1
    check_gradients(model, output_and_cost(SMALL, x, 6))


def test_straight_through_has_the_gradient_of_the_soft_score() -> None:
    """One layer: H¹ = H⁰ + τ ΔH, so the gradient in C is ∂τ/∂C · ΔH whatever the value of τ."""
    graph, x = connected_or_not(4), features(4, 11)
    gradients = []
    for hard in (False, True):
        model = make(4, num_layers=1, hard=hard, **SAMPLED)
        torch.manual_seed(8)
        out, exits = model(x, graph.edge_index(), return_exits=True)
        assert set(exits.layer.tolist()) == {0, 1}
        out.sum().backward()
        gradients.append(last_bias_gradient(model))
    assert gradients[0].abs().min() > 1e-4
    torch.testing.assert_close(gradients[0], gradients[1], rtol=0, atol=1e-12)


# --- Any step ----------------------------------------------------------------------------------


def heads(seed: int) -> tuple[Confidence, Temperature]:
    torch.manual_seed(seed)
    confidence = Confidence(MeanGNN(HIDDEN, 4, 2), continue_bias=0.3, scale=2.0).double()
    return confidence, Temperature(MLP(HIDDEN, 4, 1, bias=False)).double()


def by_hand(
    steps: list[Callable[[Tensor], Tensor]],
    confidence: Confidence,
    temperature: Temperature,
    h: Tensor,
    graph: Graph,
) -> tuple[Tensor, list[int]]:
    """Algorithm 1 with any step, without head norm and noise, from numbers and a dense D⁻¹A."""
    a = torch.zeros(graph.num_nodes, graph.num_nodes, dtype=torch.float64)
    for u, v in graph.edges:
        a[u, v] = a[v, u] = 1
    mean = a / a.sum(1, keepdim=True).clamp(min=1)
    f_c, f_nu = dict(confidence.named_parameters()), dict(temperature.named_parameters())
    state, layer = h.clone(), [len(steps)] * graph.num_nodes
    for step in range(len(steps)):
        c = torch.cat([h, mean @ h], dim=1) @ f_c["head.lins.0.weight"].T + f_c["head.lins.0.bias"]
        inverse = (1 + (h @ f_nu["head.lins.0.weight"].T).exp()).log() + temperature.nu0
        tau = (c * inverse).softmax(dim=1)[:, :1]
        for i in range(graph.num_nodes):
            if layer[i] == len(steps) and c[i, 1] > c[i, 0]:
                layer[i], state[i] = step, h[i]
        h = h + tau * steps[step](h)
    for i in range(graph.num_nodes):
        if layer[i] == len(steps):
            state[i] = h[i]
    return state, layer


def assert_equals_the_loop_by_hand(
    step: Any, functions: list[Callable[[Tensor], Tensor]], graph: Graph
) -> None:
    found: set[int] = set()
    for seed in range(6):
        confidence, temperature = heads(seed)
        loop = EarlyExit(
            step, confidence, temperature, len(functions), objective="sampled", head_norm=False
        ).eval()
        h = features(seed, graph.num_nodes, HIDDEN)
        adj = Adjacency.from_edge_index(graph.edge_index(), graph.num_nodes)
        with torch.no_grad():
            out, exits = loop(h, adj)
            state, layer = by_hand(functions, confidence, temperature, h, graph)
        assert exits.layer.tolist() == layer
        torch.testing.assert_close(out, state, rtol=0, atol=1e-10)
        found |= set(layer)
    assert len(found) >= 3


CONVS: dict[str, Callable[[], nn.Module]] = {
    "GCN": lambda: GCNConv(HIDDEN, HIDDEN),
    "SAGE": lambda: SAGEConv(HIDDEN, HIDDEN),
    "GAT": lambda: GATConv(HIDDEN, HIDDEN),
}


@pytest.mark.parametrize("name", CONVS)
def test_any_pyg_convolution_can_be_the_step(name: str) -> None:
    torch.manual_seed(0)
    conv, graph = CONVS[name]().double(), with_isolated_nodes(3)
    assert_equals_the_loop_by_hand(conv, [lambda h: conv(h, graph.edge_index())] * 4, graph)


def test_a_list_of_steps_has_its_own_weights_at_each_layer() -> None:
    torch.manual_seed(0)
    convs, graph = [CONVS["GCN"]().double() for _ in range(4)], connected_or_not(3)
    edge_index = graph.edge_index()

    def call(conv: nn.Module) -> Callable[[Tensor], Tensor]:
        return lambda h: conv(h, edge_index)

    functions = [call(conv) for conv in convs]
    assert_equals_the_loop_by_hand(convs, functions, graph)
    assert_equals_the_loop_by_hand(nn.ModuleList(convs), functions, graph)


def test_a_plain_function_can_be_the_step() -> None:
    graph = connected_or_not(3)
    dense = torch.zeros(11, 11, dtype=torch.float64)
    for u, v in graph.edges:
        dense[u, v] = dense[v, u] = 1

    def diffuse(h: Tensor, adj: Adjacency) -> Tensor:
        return 0.1 * (adj.propagate(h, "sum") - h)

    assert_equals_the_loop_by_hand(diffuse, [lambda h: 0.1 * (dense @ h - h)] * 4, graph)


def test_training_reaches_the_weights_of_any_step() -> None:
    torch.manual_seed(0)
    graph, conv = connected_or_not(0), GCNConv(HIDDEN, HIDDEN).double()
    loop = EarlyExit(conv, *heads(0), 4, objective="expected").double()
    adj = Adjacency.from_edge_index(graph.edge_index(), graph.num_nodes)
    out, _ = loop(features(0, 11, HIDDEN), adj)
    out[:, 0].sum().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in loop.parameters())


def test_a_list_of_plain_functions_can_be_the_steps() -> None:
    graph = connected_or_not(3)
    functions: list[Callable[[Tensor], Tensor]] = [torch.tanh, torch.sin, torch.cos]
    assert_equals_the_loop_by_hand(
        [lambda h, adj, f=f: f(h) for f in functions],
        functions,
        graph,
    )


@pytest.mark.parametrize("objective", ["expected", "sampled"])
@pytest.mark.parametrize("training", [True, False])
def test_with_no_layer_allowed_everyone_leaves_at_once(objective: Any, training: bool) -> None:
    confidence, temperature = heads(0)
    conv = SASConv(HIDDEN).double()
    loop = EarlyExit(conv, confidence, temperature, 3, objective=objective, task="regression")
    graph = connected_or_not(3)
    h = features(0, graph.num_nodes, HIDDEN)
    adj = Adjacency.from_edge_index(graph.edge_index(), graph.num_nodes)
    out, exits = loop.train(training)(h, adj, max_layers=0)
    assert torch.equal(out, h)
    assert exits.layer.tolist() == [0] * graph.num_nodes
    assert exits.tau.shape == (0, graph.num_nodes)
    assert float(exits.cost) == 0


# --- Errors ------------------------------------------------------------------------------------


def loop_over_sas(**options: Any) -> EarlyExit:
    return EarlyExit(SASConv(HIDDEN).double(), *heads(0), 4, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"objective": "expected", "hard": True}, "hard=True needs objective='sampled'"),
        ({"level": "graph", "step_size": "mean"}, "step_size='mean' needs level='node'"),
        ({"step_size": "median"}, "step_size must be one of"),
        ({"step_size": -0.5}, "step_size must be at least 0"),
        ({"level": "edge"}, "level must be one of"),
        ({"pool": "median"}, "pool must be one of"),
        ({"objective": "budget"}, "objective must be one of"),
        ({"after_exit": "vanish"}, "after_exit must be one of"),
        ({"task": "ranking"}, "task must be one of"),
    ],
)
def test_wrong_options_are_refused(options: Config, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        loop_over_sas(**options)


@pytest.mark.parametrize("count", [0, 1, 3, 5])
def test_a_list_of_steps_must_have_one_for_each_layer(count: int) -> None:
    with pytest.raises(ValueError, match=f"num_layers=4, got {count}"):
        EarlyExit([SASConv(HIDDEN) for _ in range(count)], *heads(0), 4)


def test_a_step_must_be_callable() -> None:
    with pytest.raises(TypeError, match="step must be callable"):
        EarlyExit(3, *heads(0), 4)  # type: ignore[arg-type]


@pytest.mark.parametrize("num_layers", [0, -1])
def test_the_budget_must_be_positive(num_layers: int) -> None:
    with pytest.raises(ValueError, match="num_layers must be at least 1"):
        EarlyExit(SASConv(HIDDEN), *heads(0), num_layers)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sample": True}, "sample=True needs objective='sampled'"),
        ({"exit_threshold": -0.1}, r"exit_threshold must be in \[0, 1\]"),
        ({"exit_threshold": 1.1}, r"exit_threshold must be in \[0, 1\]"),
        ({"exit_threshold": float("nan")}, r"exit_threshold must be in \[0, 1\]"),
        ({"max_layers": -1}, "max_layers must be at least 0"),
    ],
)
def test_wrong_questions_are_refused(options: Config, message: str) -> None:
    graph, model = connected_or_not(0), make(0, **EXPECTED)
    with pytest.raises(ValueError, match=message):
        model.predict(features(0, 11), graph.edge_index(), **options)
    assert model.training


@pytest.mark.parametrize("objective", [SAMPLED, EXPECTED], ids=["sampled", "expected"])
def test_exit_threshold_is_for_evaluation(objective: Config) -> None:
    graph, model = connected_or_not(0), make(0, **objective)
    adj = Adjacency.from_edge_index(graph.edge_index(), 11)
    with pytest.raises(ValueError, match=r"exit_threshold is for evaluation"):
        model.evolve(features(0, 11, HIDDEN), adj, exit_threshold=0.5)


def test_a_step_without_edge_features_refuses_them() -> None:
    graph = connected_or_not(0)
    adj = Adjacency.from_edge_index(graph.edge_index(), 11)
    loop = EarlyExit(GCNConv(HIDDEN, HIDDEN).double(), *heads(0), 4)
    with pytest.raises(ValueError, match="edge_attr was given, but ConvStep does not take it"):
        loop(features(0, 11, HIDDEN), adj, features(0, adj.num_edges, 2))


# --- Cost --------------------------------------------------------------------------------------


def expected_share(model: EEGNN, graph: Graph, x: Tensor, seed: int) -> float:
    """Mean over units of Σ_l Π_{k≤l} p_k, from what the heads say when the model runs."""
    said: dict[str, list[Tensor]] = {"confidence": [], "temperature": []}
    hooks = [
        getattr(model.loop, name).register_forward_hook(
            lambda _, __, out, name=name: said[name].append(out.detach())
        )
        for name in said
    ]
    torch.manual_seed(seed)
    model(x, graph.edge_index(), batch=graph.batch())
    for hook in hooks:
        hook.remove()
    survival, steps = np.ones(len(said["temperature"][0])), 0.0
    for c, inverse in zip(said["confidence"], said["temperature"], strict=True):
        score = (c[:, 0] - c[:, 1]).numpy()
        if model.loop.objective == "expected":
            score = score * inverse.numpy()
        survival = survival / (1 + np.exp(-score))
        steps += float(survival.mean())
    return steps / model.num_layers


@pytest.mark.parametrize("level", ["node", "graph"])
@pytest.mark.parametrize("objective", [SAMPLED, EXPECTED], ids=["sampled", "expected"])
def test_cost_in_training_is_the_expected_share_of_the_budget(
    objective: Config, level: str
) -> None:
    graph = batch_of_graphs(3)
    model = make(3, level=level, **objective)
    x = features(3, graph.num_nodes)
    torch.manual_seed(11)
    _, exits = model(x, graph.edge_index(), batch=graph.batch(), return_exits=True)
    assert exits.cost.item() == pytest.approx(expected_share(model, graph, x, 11), abs=1e-12)
    exits.cost.backward()
    bias = last_bias_gradient(model)
    assert bias[0] > 0  # a preference for continuing costs more
    assert bias[1] < 0


@pytest.mark.parametrize("level", ["node", "graph"])
@pytest.mark.parametrize("objective", [SAMPLED, EXPECTED], ids=["sampled", "expected"])
def test_cost_at_evaluation_is_the_share_that_was_used(objective: Config, level: str) -> None:
    graph = batch_of_graphs(3)
    model = make(3, level=level, **objective)
    x = features(3, graph.num_nodes)
    _, exits = model.predict(x, graph.edge_index(), batch=graph.batch())
    assert exits.cost.item() == pytest.approx(exits.layer.double().mean().item() / L, abs=1e-12)
    assert 0 < exits.cost.item() < 1


def test_minimising_the_cost_makes_units_leave_earlier() -> None:
    graph, model = connected_or_not(0), make(0, continue_bias=3.0)
    x = features(0, 11)
    before = model.predict(x, graph.edge_index())[1].layer.double().mean()
    optimiser = torch.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(30):
        optimiser.zero_grad()
        model(x, graph.edge_index(), return_exits=True)[1].cost.backward()
        optimiser.step()
    assert model.predict(x, graph.edge_index())[1].layer.double().mean() < before - 1


# --- Determinism -------------------------------------------------------------------------------

TRAIN_AND_HASH = """
import hashlib, torch
from eegnn import EEGNN
torch.set_num_threads(1)
digest = hashlib.sha256()
for objective in ("sampled", "expected"):
    torch.manual_seed(7)
    n = 40
    u, v = torch.randint(n, (2, 120))
    edge_index = torch.cat([torch.stack([u, v]), torch.stack([v, u])], dim=1)
    x, y = torch.randn(n, 4), torch.randint(3, (n,))
    model = EEGNN(4, 16, 3, num_layers=6, objective=objective, dropout=0.2)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(5):
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(model(x, edge_index), y).backward()
        optimiser.step()
    out, exits = model.predict(x, edge_index)
    for tensor in (out, exits.layer, exits.time, *model.state_dict().values()):
        digest.update(tensor.detach().contiguous().numpy().tobytes())
digest = digest.hexdigest()
"""


def train_and_hash() -> str:
    scope: dict[str, Any] = {}
    threads = torch.get_num_threads()
    try:
        exec(TRAIN_AND_HASH, scope)
    finally:
        torch.set_num_threads(threads)
    return str(scope["digest"])


def test_same_seed_gives_the_same_bits_within_a_process() -> None:
    assert train_and_hash() == train_and_hash()


def test_same_seed_gives_the_same_bits_in_another_process() -> None:
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", TRAIN_AND_HASH + "print(digest)"],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
        )
        for hash_seed in ("1", "2")
    ]
    digests = [process.communicate(timeout=120)[0].strip() for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    assert len(digests[0]) == 64
    assert digests[0] == digests[1]


@pytest.mark.parametrize("objective", [SAMPLED, EXPECTED], ids=["sampled", "expected"])
def test_noise_depends_on_the_seed_only_where_something_is_drawn(objective: Config) -> None:
    graph, model = connected_or_not(0), make(0, **objective)
    x = features(0, 11)

    def run(seed: int) -> Tensor:
        torch.manual_seed(seed)
        return model(x, graph.edge_index()).detach()

    assert torch.equal(run(1), run(1))
    assert torch.equal(run(1), run(2)) == (objective is EXPECTED)
    model.eval()
    assert torch.equal(run(1), run(2))
