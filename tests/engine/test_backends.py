"""Every backend against the reference loop, on one grid of configurations."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch_geometric.nn import GCNConv

from eegnn import EEGNN, SASGNN, Adjacency, EarlyExit, Exits, _linear, engine
from eegnn.engine import pruned, pruned_pairs
from eegnn.engine.step import InPlaceStep
from eegnn.nn.program import Program
from tests.nn.model_examples import lively

NODES, LAYERS = 400, 12

MODELS: dict[str, dict[str, Any]] = {
    "default": {},
    "two-layer heads": {"head_layers": 2},
    "sas heads": {"confidence": "sas", "head_layers": 2},
    "heads without neighbors": {"confidence": "mlp"},
    "freeze": {"after_exit": "freeze"},
    "freeze, two-layer heads": {"after_exit": "freeze", "head_layers": 2},
    "fixed step": {"step_size": 0.5},
    "edge features": {"edge_dim": 2},
    "graphs": {"level": "graph"},
    "graphs, added": {"level": "graph", "pool": "add", "confidence": "mean"},
    "graphs, concatenated": {"level": "graph", "pool": "concat"},
    "graphs, concatenated, heads with neighbors": {
        "level": "graph",
        "pool": "concat",
        "confidence": "mean",
    },
    "graphs, largest": {"level": "graph", "pool": "max", "edge_dim": 2},
    "pairs": {"level": "edge", "pool": "hadamard"},
    "pairs, small steps, edge features": {
        "level": "edge",
        "pool": "concat",
        "step_size": 0.3,
        "edge_dim": 2,
    },
}
FIXED_DEPTH: dict[str, dict[str, Any]] = {
    "nodes": {},
    "a step of its own for each layer": {"shared": False},
    "edge features": {"edge_dim": 2},
    "graphs": {"level": "graph", "pool": "add"},
    "norm": {"conv_norm": "layer"},
    "other activation": {"activation": "tanh"},
}
KNOBS: dict[str, dict[str, Any]] = {
    "own rule": {},
    "low threshold": {"exit_threshold": 0.6},
    "high threshold": {"exit_threshold": 0.9},
    "everyone at once": {"exit_threshold": 0.0},
    "nobody": {"exit_threshold": 1.0},
    "limit": {"max_layers": 5},
    "threshold and limit": {"exit_threshold": 0.9, "max_layers": 7},
}


@pytest.fixture(autouse=True)
def always_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the graph shrink whenever it can, however small it is."""
    monkeypatch.setattr(pruned, "SMALLEST", 0)
    monkeypatch.setattr(pruned, "BUILD_WORK", 0.0)
    monkeypatch.setattr(pruned._Run, "_worth", lambda self, then, steps: True)
    monkeypatch.setattr(pruned_pairs, "SEARCH", 1.0)


@pytest.fixture(autouse=True)
def always_much_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let linear maps be computed as on a large graph."""
    monkeypatch.setattr(_linear, "MUCH_WORK", 0)


def ring_of_chords(n: int = NODES) -> Tensor:
    """A ring on which neighborhoods grow slowly, with some chords and two nodes by themselves."""
    around = torch.stack([torch.arange(n - 2), (torch.arange(n - 2) + 1) % (n - 2)])
    chords = torch.tensor([[3, 50, 120], [90, 200, 121]])
    edges = torch.cat([around, chords], dim=1)
    return torch.cat([edges, edges.flip(0)], dim=1)


def graph_batch(level: str) -> Tensor | None:
    """Pieces of the ring; graph 3 is empty."""
    if level != "graph":
        return None
    batch = torch.arange(NODES) // 40
    return torch.where(batch >= 3, batch + 1, batch)


def edges_within(batch: Tensor | None) -> Tensor:
    edges = ring_of_chords()
    return edges if batch is None else edges[:, batch[edges[0]] == batch[edges[1]]]


def prepared(
    options: dict[str, Any], knobs: dict[str, Any], dtype: torch.dtype, seed: int
) -> tuple[Program, Tensor, Adjacency]:
    torch.manual_seed(seed)
    model = lively(EEGNN(5, 16, 3, LAYERS, **options), scale=1.0, continue_bias=1.0)
    model.to(dtype).eval()
    batch = graph_batch(model.level)
    edge_index = edges_within(batch)
    adj = Adjacency.from_edge_index(edge_index, NODES, batch)
    if model.level == "edge":  # most of them in one place, and one without neighbors
        near = torch.randint(0, 40, (2, 30), generator=torch.Generator().manual_seed(seed))
        adj = adj.with_pairs(torch.cat([near, torch.tensor([[200, 3], [201, NODES - 1]])], 1))
    edge_attr = torch.randn(edge_index.size(1), 2, dtype=dtype) if model.edge_dim else None
    h = model.encoder(torch.randn(NODES, 5, dtype=dtype))
    return model.loop.program(adj, edge_attr, model.decoder, **knobs), h, adj


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("knobs", KNOBS.values(), ids=KNOBS)
@pytest.mark.parametrize("options", MODELS.values(), ids=MODELS)
@torch.no_grad()
def test_every_backend_computes_what_the_reference_computes(
    options: dict[str, Any], knobs: dict[str, Any], dtype: torch.dtype
) -> None:
    for seed in range(3):
        program, h, adj = prepared(options, knobs, dtype, seed)
        start = h.clone()
        expected, truth = engine.BACKENDS["reference"](program, h, adj)
        name = engine.choose(program, h).backend
        assert name == "pruned"
        out, exits = engine.BACKENDS[name](program, h, adj)
        assert torch.equal(h, start)  # the caller's states are left alone
        assert torch.equal(exits.layer, truth.layer)
        torch.testing.assert_close(out, expected, rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(exits.time, truth.time, rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(exits.cost, truth.cost)
        assert exits.tau.shape == truth.tau.shape
        taken = torch.arange(exits.tau.size(0)).unsqueeze(1) < exits.layer
        torch.testing.assert_close(exits.tau[taken], truth.tau[taken], rtol=1e-5, atol=1e-5)
        assert (exits.backend, truth.backend) == ("pruned", "reference")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("options", FIXED_DEPTH.values(), ids=FIXED_DEPTH)
@torch.no_grad()
def test_a_fixed_depth_computes_what_the_reference_computes(
    options: dict[str, Any], dtype: torch.dtype
) -> None:
    torch.manual_seed(0)
    model = SASGNN(5, 16, 3, LAYERS, **options).to(dtype).eval()
    batch = graph_batch(model.level)
    edges = edges_within(batch)
    adj = Adjacency.from_edge_index(edges, NODES, batch)
    edge_attr = torch.randn(edges.size(1), 2, dtype=dtype) if model.edge_dim else None
    h = torch.randn(NODES, 16, dtype=dtype)
    for limit in (None, 1, 7):
        program, start = model.program(adj, edge_attr, max_layers=limit), h.clone()
        expected, truth = engine.BACKENDS["reference"](program, h, adj)
        assert engine.choose(program, h).backend == "pruned"
        out, exits = engine.BACKENDS["pruned"](program, h, adj)
        assert torch.equal(h, start)
        torch.testing.assert_close(out, expected, rtol=1e-5, atol=1e-5)
        for one, other in zip(exits_of(exits), exits_of(truth), strict=True):
            assert torch.equal(one, other)


def exits_of(exits: Exits) -> tuple[Tensor, ...]:
    return exits.layer, exits.time, exits.tau, exits.cost


@torch.no_grad()
def test_the_graph_does_shrink(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    narrow = pruned._Run._narrow

    def watched(self: pruned._Run, steps: int) -> None:
        narrow(self, steps)
        sizes.append(self.adj.num_targets)

    monkeypatch.setattr(pruned._Run, "_narrow", watched)
    for name in ("default", "two-layer heads", "freeze", "freeze, two-layer heads", "graphs"):
        sizes.clear()
        for seed in range(3):
            for threshold in (0.6, 0.9):
                knobs = {"exit_threshold": threshold}
                pruned.run(*prepared(MODELS[name], knobs, torch.float64, seed))
        assert min(sizes) < 0.8 * NODES, name


@torch.no_grad()
@pytest.mark.parametrize("level", ["node", "graph"])
@pytest.mark.parametrize("n", [0, 1, 2])
def test_odd_graphs(level: str, n: int) -> None:
    torch.manual_seed(0)
    model = lively(EEGNN(5, 8, 2, 4, level=level)).eval()  # type: ignore[arg-type]
    edges = torch.tensor([[0, 1], [1, 0]]) if n == 2 else torch.empty(2, 0, dtype=torch.int64)
    adj = Adjacency.from_edge_index(edges, n, torch.zeros(n, dtype=torch.int64), num_graphs=2)
    program, h = model.loop.program(adj, None, model.decoder), torch.randn(n, 8)
    expected, truth = engine.BACKENDS["reference"](program, h, adj)
    out, exits = engine.BACKENDS["pruned"](program, h, adj)
    assert torch.equal(exits.layer, truth.layer)
    torch.testing.assert_close(out, expected)


def reasons() -> dict[str, str]:
    """Why the reference is taken, for calls that need it."""
    torch.manual_seed(0)
    x, edges = torch.randn(NODES, 5), ring_of_chords()
    model, mean = EEGNN(5, 8, 2, 4), EEGNN(5, 8, 2, 4, step_size="mean")
    return {
        "sample": model.explain_backend(x, edges, sample=True),
        "mean": mean.explain_backend(x, edges),
        "plain": model.explain_backend(x, edges),
    }


def test_a_reason_is_given() -> None:
    assert reasons()["plain"].startswith("pruned: ")
    assert "noise" in reasons()["sample"]
    assert "step_size='mean'" in reasons()["mean"]


def test_gradients_take_the_reference() -> None:
    model = EEGNN(5, 8, 2, 4).eval()
    out, exits = model(torch.randn(NODES, 5), ring_of_chords(), return_exits=True)
    assert exits.backend == "reference"
    assert out.requires_grad
    with torch.no_grad():
        _, exits = model(torch.randn(NODES, 5), ring_of_chords(), return_exits=True)
    assert exits.backend == "pruned"


@torch.no_grad()
def test_steps_of_others_take_the_reference_for_nodes() -> None:
    confidence, temperature = EEGNN(5, 8, 2, 4).loop.confidence, EEGNN(5, 8, 2, 4).loop.temperature
    loop = EarlyExit(GCNConv(8, 8), confidence, temperature, 4).eval()
    adj = Adjacency.from_edge_index(ring_of_chords(), NODES)
    choice = engine.choose(loop.program(adj), torch.randn(NODES, 8))
    assert choice.backend == "reference"
    assert "SAS-GNN" in choice.reason


@torch.no_grad()
def test_nodes_that_no_open_pair_can_be_reached_from_are_not_computed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    program, h, adj = prepared(MODELS["pairs"], {"exit_threshold": 1.0}, torch.float64, 0)
    adj = adj.with_pairs(torch.tensor([[300, 301], [302, 302]]))
    rows: list[int] = []
    change = InPlaceStep.change

    def counted(self: InPlaceStep, h: Tensor, part: Adjacency) -> tuple[Tensor, float]:
        rows.append(part.num_targets)
        return change(self, h, part)

    monkeypatch.setattr(InPlaceStep, "change", counted)
    out, _ = engine.BACKENDS["pruned"](program, h, adj)
    expected, _ = engine.BACKENDS["reference"](program, h, adj)
    torch.testing.assert_close(out, expected)
    # On this part of the ring k more steps need the three ends and k - 1 nodes on either side; a
    # smaller graph is made when it has at most half of the nodes, with those that are only read.
    assert rows == [NODES, *[3 + 2 * 10] * 6, *[3 + 2 * 4] * 3, 3 + 2 * 1, 3]
