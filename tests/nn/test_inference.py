"""What evaluation leaves out, against the plain loop, which runs where gradients are on."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from eegnn import EEGNN, Adjacency, EarlyExit, Exits
from eegnn.nn import inference
from eegnn.nn.graph_inference import graph_reader
from eegnn.nn.heads import MLP, Confidence, MeanGNN, SASHead, Temperature
from eegnn.nn.sas import SASStep
from tests.nn.exit_examples import (
    EXPECTED,
    HIDDEN,
    SAMPLED,
    Config,
    batch_of_graphs,
    features,
    make,
)
from tests.transcription import Graph

OBJECTIVES = {
    "sampled": SAMPLED,
    "expected": EXPECTED,
    "averaged": {**EXPECTED, "objective": "averaged"},
}


def ring(seed: int) -> Graph:
    return Graph([(i, (i + 1) % 60) for i in range(60)], 60)


def grid(seed: int) -> Graph:
    rows, columns = 6, 11
    edges = [
        (r * columns + c, r * columns + c + 1) for r in range(rows) for c in range(columns - 1)
    ]
    edges += [(i, i + columns) for i in range((rows - 1) * columns)]
    return Graph(edges, rows * columns)


def sparse(seed: int) -> Graph:
    rng = random.Random(seed)
    pairs = {tuple(sorted(rng.sample(range(70), 2))) for _ in range(65)}
    return Graph([(u, v) for u, v in sorted(pairs)], 70)


GRAPHS: dict[str, Callable[[int], Graph]] = {"ring": ring, "grid": grid, "sparse": sparse}


@pytest.fixture
def narrowings(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Let the graph shrink whenever it can; the rows of each smaller graph are noted."""
    monkeypatch.setattr(inference, "SMALLEST", 0)
    monkeypatch.setattr(inference, "BUILD_WORK", 0.0)
    rows_kept: list[int] = []
    around = Adjacency.around

    def noted(self: Adjacency, rows: Tensor) -> tuple[Adjacency, Tensor]:
        rows_kept.append(rows.numel())
        return around(self, rows)

    monkeypatch.setattr(Adjacency, "around", noted)
    return rows_kept


def plain(model: EEGNN, graph: Graph, x: Tensor, attr: Tensor | None) -> tuple[Tensor, Exits]:
    model.eval()
    out, exits = model(x, graph.edge_index(), attr, return_exits=True)
    assert out.requires_grad
    return out.detach(), exits


def assert_same(found: tuple[Tensor, Exits], truth: tuple[Tensor, Exits], tolerance: float) -> None:
    (out, exits), (plain_out, plain_exits) = found, truth
    assert torch.equal(exits.layer, plain_exits.layer)
    torch.testing.assert_close(out, plain_out, rtol=0, atol=tolerance)
    loose = 10 * tolerance
    torch.testing.assert_close(exits.time, plain_exits.time.detach(), rtol=loose, atol=tolerance)
    torch.testing.assert_close(exits.cost, plain_exits.cost.detach())
    assert exits.tau.shape == plain_exits.tau.shape
    # Of who has left and does not matter any more, no step size is noted.
    step = torch.arange(len(exits.tau)).unsqueeze(-1)
    skipped = (exits.tau == 0) & (step >= exits.layer)
    tau = plain_exits.tau.masked_fill(skipped, 0.0)
    torch.testing.assert_close(exits.tau, tau, rtol=loose, atol=tolerance)


CONFIGS: dict[str, Config] = {
    "fixed step": {"step_size": 0.7},
    "mean step": {"step_size": "mean"},
    "head norm": {"head_norm": True},
    "two-layer heads": {"head_layers": 2, "head_channels": 4},
    "mlp heads": {"confidence": "mlp", "temperature": "mlp"},
    "sas heads": {"confidence": "sas", "temperature": "sas", "head_channels": 4},
    "tanh": {"activation": "tanh"},
    "norm": {"conv_norm": "layer"},
    "edge features": {"edge_dim": 2},
    "deep decoder": {"decoder_layers": 2},
    "labels": {"task": "multilabel"},
    "values": {"task": "regression"},
}


@pytest.mark.parametrize("after_exit", ["evolve", "freeze"])
@pytest.mark.parametrize("shape", GRAPHS)
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_it_equals_the_plain_loop(
    objective: str, shape: str, after_exit: str, narrowings: list[int]
) -> None:
    for seed in (4, 5, 77):
        graph = GRAPHS[shape](seed)
        model = make(seed, **OBJECTIVES[objective], after_exit=after_exit)
        x = features(seed, graph.num_nodes)
        truth = plain(model, graph, x, None)
        assert_same(model.predict(x, graph.edge_index()), truth, 1e-10)


@pytest.mark.parametrize("after_exit", ["evolve", "freeze"])
@pytest.mark.parametrize("name", CONFIGS)
def test_it_equals_the_plain_loop_of_other_models(
    name: str, after_exit: str, narrowings: list[int]
) -> None:
    graph, x = grid(0), features(77, 66)
    attr = features(9, 2 * len(graph.edges), 2) if name == "edge features" else None
    for objective in (SAMPLED, EXPECTED):
        model = make(77, **{**objective, **CONFIGS[name], "after_exit": after_exit})
        truth = plain(model, graph, x, attr)
        assert_same(model.predict(x, graph.edge_index(), attr), truth, 1e-10)


@pytest.mark.parametrize("after_exit", ["evolve", "freeze"])
def test_the_comparisons_leave_something_out(after_exit: str, narrowings: list[int]) -> None:
    found: set[tuple[str, str]] = set()
    for objective, config in OBJECTIVES.items():
        for shape, draw in GRAPHS.items():
            for seed in (4, 77):
                graph, start = draw(seed), len(narrowings)
                model = make(seed, **config, after_exit=after_exit)
                model.predict(features(seed, graph.num_nodes), graph.edge_index())
                if min(narrowings[start:], default=graph.num_nodes) < graph.num_nodes:
                    found.add((objective, shape))
    assert len(found) >= 7


@pytest.mark.parametrize("after_exit", ["evolve", "freeze"])
@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("seed", range(4))
def test_it_equals_the_plain_loop_in_float32(
    seed: int, objective: str, after_exit: str, narrowings: list[int]
) -> None:
    graph = grid(0)
    model = make(seed, **OBJECTIVES[objective], after_exit=after_exit, num_layers=9).float()
    x = features(seed, graph.num_nodes).float()
    assert_same(model.predict(x, graph.edge_index()), plain(model, graph, x, None), 1e-5)


@pytest.mark.parametrize("after_exit", ["evolve", "freeze"])
def test_only_rows_that_matter_are_computed(
    after_exit: str, narrowings: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a ring where the nodes 0, 1, 2 stay and all others leave at once."""
    computed: list[int] = []
    advance = SASStep.advance_

    def counted(self: SASStep, h: Tensor, adj: Adjacency, *given: object) -> None:
        computed.append(adj.inner)
        advance(self, h, adj, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(SASStep, "advance_", counted)
    graph, model = ring(0), make(0, **SAMPLED, after_exit=after_exit)
    stay = torch.zeros(60, 2, dtype=torch.float64)
    stay[:3, 0] = stay[3:, 1] = 1
    original = model.loop

    def confidence(h: Tensor, adj: Adjacency) -> Tensor:
        return stay if adj.nodes is None else stay[adj.nodes]

    loop = EarlyExit(
        original.step,
        confidence,
        original.temperature,
        6,
        objective="sampled",
        after_exit=after_exit,  # type: ignore[arg-type]
    ).eval()
    monkeypatch.setattr("eegnn.nn.early_exit.hops", lambda head: 0)
    adj = Adjacency.from_edge_index(graph.edge_index(), 60)
    with torch.no_grad():
        _, exits = loop(features(0, 60, HIDDEN), adj)
    assert exits.layer.tolist() == [6] * 3 + [0] * 57
    # After the first step five are to come, so nodes within five hops of 0, 1, 2 matter.
    assert computed == [3 + 2 * 5 if after_exit == "evolve" else 3] * 6
    assert (exits.tau != 0).sum(dim=1).tolist() == [3] * 6


def test_the_loop_ends_when_everyone_has_left() -> None:
    graph, model = grid(0), make(0, continue_bias=0.0, num_layers=50)
    _, exits = model.predict(features(0, graph.num_nodes), graph.edge_index())
    assert len(exits.tau) == int(exits.layer.max()) < 50


def test_initial_states_are_left_alone() -> None:
    model, graph = make(1, **EXPECTED), grid(0)
    adj = Adjacency.from_edge_index(graph.edge_index(), graph.num_nodes)
    h = features(1, graph.num_nodes, HIDDEN)
    before = h.clone()
    with torch.no_grad():
        model.loop.eval()(h, adj)
    assert torch.equal(h, before)


def test_nothing_is_left_out_where_a_smaller_graph_does_not_pay(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(self: Adjacency, rows: Tensor) -> None:
        raise AssertionError("no smaller graph was worth making")

    monkeypatch.setattr(Adjacency, "around", refuse)
    model, graph = make(4, **EXPECTED, after_exit="freeze"), grid(0)  # a small one
    model.predict(features(4, graph.num_nodes), graph.edge_index())


@pytest.mark.parametrize("temperature", ["linear", "mlp"])
@pytest.mark.parametrize("confidence", ["mean", "mlp", "sas"])
def test_reading_equals_asking_the_heads(confidence: str, temperature: str) -> None:
    model, graph = make(3, confidence=confidence, temperature=temperature), grid(0)
    adj = Adjacency.from_edge_index(graph.edge_index(), graph.num_nodes)
    h, loop = features(3, graph.num_nodes, HIDDEN), model.loop
    units, delta, inverse = inference.reader(loop.confidence, loop.temperature)(h, adj)
    assert units is h
    c = loop.confidence(h, adj)
    torch.testing.assert_close(delta, c[:, 0] - c[:, 1], rtol=0, atol=1e-12)
    torch.testing.assert_close(inverse, loop.temperature(h, adj), rtol=0, atol=1e-12)


@pytest.mark.parametrize("temperature", ["linear", "mlp"])
@pytest.mark.parametrize("confidence", ["mean", "mlp", "sas"])
@pytest.mark.parametrize("pool", ["mean", "add", "max"])
def test_reading_graphs_equals_asking_the_heads(
    pool: str, confidence: str, temperature: str
) -> None:
    settings = {"confidence": confidence, "temperature": temperature, "pool": pool}
    model, graph = make(3, level="graph", **settings), batch_of_graphs(1)
    adj = Adjacency.from_edge_index(
        graph.edge_index(), graph.num_nodes, graph.batch(), graph.num_graphs
    )
    h, loop = features(3, graph.num_nodes, HIDDEN), model.loop
    found = graph_reader(loop.confidence, loop.temperature, pool)(h, adj)
    with torch.no_grad():
        wanted = loop.decide(h, adj, noisy=False)
        tau = torch.sigmoid(found[1] * found[2])
    torch.testing.assert_close(found[0], wanted.units, rtol=0, atol=1e-12)
    torch.testing.assert_close(tau, wanted.tau, rtol=0, atol=1e-12)


def test_how_far_heads_see() -> None:
    assert inference.hops(Temperature(MLP(4, 4, 1))) == 0
    assert inference.hops(Confidence(MeanGNN(4, 4, 2, num_layers=3))) == 3
    assert inference.hops(Confidence(SASHead(4, 4, 2, num_layers=2))) == 2
    assert inference.hops(lambda h, adj: h) is None


def test_the_model_is_left_as_it_was() -> None:
    model, graph = make(4, **EXPECTED), grid(0)
    state = copy.deepcopy(model.state_dict())
    model.predict(features(4, graph.num_nodes), graph.edge_index())
    for name, value in model.state_dict().items():
        assert torch.equal(value, state[name])
