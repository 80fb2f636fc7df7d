"""Evaluation by compiled kernels, against the plain loop, which runs where gradients are on."""

from __future__ import annotations

import builtins
import sys
from typing import Any

import pytest
import torch
from torch import Tensor

from eegnn import EEGNN, SASGNN, Adjacency, Exits
from eegnn.nn import compiled, fused, inference
from eegnn.nn.compiled import pytorch_alone
from tests.nn.exit_examples import (
    EXPECTED,
    HIDDEN,
    SAMPLED,
    Config,
    batch_of_graphs,
    features,
    make,
)
from tests.nn.test_inference import GRAPHS, OBJECTIVES, grid, plain
from tests.transcription import Graph

kernels: Any = pytest.importorskip("eegnn.nn.kernels")


@pytest.fixture(autouse=True)
def rows(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Leave rows out whenever possible; note how many each step computes."""
    monkeypatch.setattr(inference, "SMALLEST", 0)
    computed: list[int] = []
    advance = fused.FusedWalk.advance

    def noted(self: fused.FusedWalk, *given: Any) -> None:
        computed.append(self.rows)
        advance(self, *given)

    monkeypatch.setattr(fused.FusedWalk, "advance", noted)
    return computed


def assert_same(found: tuple[Tensor, Exits], truth: tuple[Tensor, Exits]) -> None:
    """Everyone does the same until they leave; what they do after that is rounded differently."""
    (out, exits), (plain_out, plain_exits) = found, truth
    assert torch.equal(exits.layer, plain_exits.layer)
    torch.testing.assert_close(out, plain_out, rtol=0, atol=1e-5)
    torch.testing.assert_close(exits.time, plain_exits.time.detach(), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(exits.cost, plain_exits.cost.detach())
    assert exits.tau.shape == plain_exits.tau.shape
    gone = torch.arange(len(exits.tau)).unsqueeze(-1) >= exits.layer
    tau, plain_tau = (one.tau.masked_fill(gone, 0.0) for one in (exits, plain_exits))
    torch.testing.assert_close(tau, plain_tau.detach(), rtol=1e-4, atol=1e-5)


def single(seed: int, graph: Graph, **config: Any) -> tuple[EEGNN, Tensor]:
    return make(seed, **config).float(), features(seed, graph.num_nodes).float()


@pytest.mark.parametrize("after_exit", ["evolve", "freeze"])
@pytest.mark.parametrize("shape", GRAPHS)
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_nodes_do_as_in_the_plain_loop(
    objective: str, shape: str, after_exit: str, rows: list[int]
) -> None:
    for seed in (4, 5, 77):
        graph = GRAPHS[shape](seed)
        config = {**OBJECTIVES[objective], "after_exit": after_exit, "num_layers": 9}
        model, x = single(seed, graph, **config)
        found = model.predict(x, graph.edge_index())
        assert_same(found, plain(model, graph, x, None))
    assert rows
    if (shape, after_exit) != ("ring", "evolve"):  # where some stay until the end
        assert min(rows) < graph.num_nodes


@pytest.mark.parametrize("level", ["node", "graph"])
@pytest.mark.parametrize("nodes", [1, 5])
def test_graphs_without_edges(nodes: int, level: str, rows: list[int]) -> None:
    graph = Graph([], nodes, [0] * nodes)
    model, x = single(4, graph, continue_bias=9.0, level=level)
    found = model.predict(x, graph.edge_index(), None, graph.batch())
    assert rows
    assert_same(found, plain_graphs(model, graph, x, None))


def test_states_in_another_order_of_memory() -> None:
    graph = grid(0)
    model = make(4, **EXPECTED).float().eval()
    adj = Adjacency.from_edge_index(graph.edge_index(), graph.num_nodes)
    h = features(4, graph.num_nodes, HIDDEN).float()
    with torch.no_grad():
        truth, _ = model.loop(h, adj, None, model.decoder)
        found, _ = model.loop(h.T.contiguous().T, adj, None, model.decoder)
    assert torch.equal(found, truth)


CONFIGS: dict[str, Config] = {
    "fixed step": {"step_size": 0.7},
    "state": {"answer": "state"},
    "leak": {"leak": 0.3},
    "edge features": {"edge_dim": 2},
    "linear edge term": {"edge_dim": 2, "edge_term": "linear"},
    "deep decoder": {"decoder_layers": 2, "decoder_bias": True},
    "labels": {"task": "multilabel"},
    "values": {"task": "regression"},
    "bias of exits": {"exit_bias": True},
    "mlp": {"confidence": "mlp"},
}


def randomised(model: EEGNN) -> EEGNN:
    """With a bias of exits that is not 0."""
    if model.exit_bias is not None:
        torch.nn.init.normal_(model.exit_bias.bias)
    return model


@pytest.mark.parametrize("after_exit", ["evolve", "freeze"])
@pytest.mark.parametrize("name", CONFIGS)
def test_nodes_of_other_models(name: str, after_exit: str, rows: list[int]) -> None:
    graph = grid(0)
    attr = features(9, 2 * len(graph.edges), 2).float() if "edge" in name else None
    for seed in (4, 77):
        model, x = single(seed, graph, **{**EXPECTED, **CONFIGS[name], "after_exit": after_exit})
        truth = plain(randomised(model), graph, x, attr)
        assert_same(model.predict(x, graph.edge_index(), attr), truth)
    assert rows


@pytest.mark.parametrize("pool", ["mean", "add"])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_graphs_do_as_in_the_plain_loop(objective: str, pool: str, rows: list[int]) -> None:
    for seed in (4, 5, 77):
        graph = batch_of_graphs(seed)
        model, x = single(seed, graph, **OBJECTIVES[objective], level="graph", pool=pool)
        found = model.predict(x, graph.edge_index(), None, graph.batch())
        assert_same(found, plain_graphs(model, graph, x, None))
    assert min(rows) < graph.num_nodes


def plain_graphs(
    model: EEGNN, graph: Graph, x: Tensor, attr: Tensor | None
) -> tuple[Tensor, Exits]:
    model.eval()
    out, exits = model(x, graph.edge_index(), attr, graph.batch(), return_exits=True)
    assert out.requires_grad
    return out.detach(), exits


@pytest.mark.parametrize("name", sorted(set(CONFIGS) - {"mlp"}))
def test_graphs_of_other_models(name: str, rows: list[int]) -> None:
    graph = batch_of_graphs(4)
    attr = features(9, graph.edge_index().size(1), 2).float() if "edge" in name else None
    for seed in (4, 77):
        model, x = single(seed, graph, **{**EXPECTED, **CONFIGS[name], "level": "graph"})
        truth = plain_graphs(randomised(model), graph, x, attr)
        found = model.predict(x, graph.edge_index(), attr, graph.batch())
        assert_same(found, truth)
    assert rows


@pytest.mark.parametrize("level", ["node", "graph"])
@pytest.mark.parametrize(
    "knobs",
    [
        {"max_layers": 3},
        {"max_layers": 0},
        {"exit_threshold": 0.2},
        {"exit_threshold": 0.7},
        {"exit_threshold": 1},
    ],
)
def test_knobs_do_as_without_kernels(knobs: dict[str, Any], level: str) -> None:
    graph = batch_of_graphs(4)
    others: list[Config] = [
        {**EXPECTED, "task": "multilabel"},
        {**EXPECTED, "task": "regression"},
        {**EXPECTED, "decoder_layers": 2},
        {**EXPECTED, "answer": "state"},
        {**EXPECTED, "answer": "state", "task": "multilabel"},
        {**EXPECTED, "answer": "state", "decoder_layers": 2},
    ]
    for config in (EXPECTED, SAMPLED, *others):
        model, x = single(4, graph, **config, level=level)
        found = model.predict(x, graph.edge_index(), None, graph.batch(), **knobs)
        with pytorch_alone():
            truth, exits = model.predict(x, graph.edge_index(), None, graph.batch(), **knobs)
        torch.testing.assert_close(found[0], truth, rtol=0, atol=1e-5)
        assert torch.equal(found[1].layer, exits.layer)
        torch.testing.assert_close(found[1].time, exits.time, rtol=0, atol=1e-5)


@pytest.mark.parametrize("level", ["node", "graph"])
def test_traces_do_as_without_kernels(level: str, rows: list[int]) -> None:
    graph = batch_of_graphs(4)
    model, x = single(4, graph, **EXPECTED, level=level)
    model.eval()

    def trace() -> tuple[Tensor, Tensor]:
        with torch.no_grad():
            x_, adj = model._enter(x, graph.edge_index(), None, graph.batch())
            return model.loop.trace(model._encode(x_), adj, None, model.decoder)

    found = trace()
    assert rows == [graph.num_nodes] * model.num_layers
    with pytorch_alone():
        truth = trace()
    for one, other in zip(found, truth, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_who_is_not_a_number_spreads_as_in_the_plain_loop(rows: list[int]) -> None:
    graph = grid(0)
    model = make(4, **EXPECTED).float().eval()
    adj = Adjacency.from_edge_index(graph.edge_index(), graph.num_nodes)
    h = features(4, graph.num_nodes, HIDDEN).float()
    h[17] = torch.nan
    truth, plain_exits = model.loop(h, adj, None, model.decoder)
    assert 0 < truth.isnan().any(dim=1).sum() < graph.num_nodes
    assert not rows
    with torch.no_grad():
        found, exits = model.loop(h, adj, None, model.decoder)
    assert rows
    torch.testing.assert_close(found, truth.detach(), rtol=0, atol=1e-5, equal_nan=True)
    assert torch.equal(exits.layer, plain_exits.layer)


OTHERS: dict[str, Config] = {
    "double": {},
    "mean step": {"step_size": "mean"},
    "head norm": {"head_norm": True},
    "two-layer heads": {"head_layers": 2},
    "sas heads": {"confidence": "sas"},
    "tanh": {"activation": "tanh"},
    "norm": {"conv_norm": "layer"},
    "largest state": {"level": "graph", "pool": "max"},
    "heads that read nodes": {"level": "graph", "confidence": "mean"},
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_models_do_without(name: str, rows: list[int]) -> None:
    graph = batch_of_graphs(4)
    model, x = make(4, **OTHERS[name]), features(4, graph.num_nodes)
    if name != "double":
        model, x = model.float(), x.float()
    model.predict(x, graph.edge_index(), None, graph.batch())
    assert not rows


def test_kernels_are_not_needed(rows: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    original = builtins.__import__

    def without(name: str, *given: Any, **more: Any) -> Any:
        if name.split(".")[0] in ("numba", "llvmlite"):
            raise ImportError(name)
        return original(name, *given, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    for module in [name for name in sys.modules if name.startswith("eegnn.nn.kernels")]:
        monkeypatch.delitem(sys.modules, module)
    compiled._kernels.cache_clear()
    try:
        graph = grid(0)
        model, x = single(4, graph, **EXPECTED)
        out, _ = model.predict(x, graph.edge_index())
    finally:
        monkeypatch.undo()
        compiled._kernels.cache_clear()
    assert not rows
    torch.testing.assert_close(out, model.predict(x, graph.edge_index())[0], rtol=0, atol=1e-5)


@pytest.mark.parametrize("edge_dim", [None, 2])
@pytest.mark.parametrize("level", ["node", "graph"])
def test_a_model_of_fixed_depth_does_as_without_kernels(
    level: Any, edge_dim: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[int] = []
    advance = kernels.advance

    def counted(*given: Any) -> None:
        steps.append(1)
        advance(*given)

    monkeypatch.setattr(kernels, "advance", counted)
    graph = batch_of_graphs(4)
    torch.manual_seed(0)
    model = SASGNN(3, 8, 2, 7, level=level, edge_dim=edge_dim)
    attr = None if edge_dim is None else features(9, graph.edge_index().size(1), 2).float()
    given = (features(4, graph.num_nodes).float(), graph.edge_index(), attr, graph.batch())
    found, _ = model.predict(*given)
    with pytorch_alone():
        truth, _ = model.predict(*given)
    torch.testing.assert_close(found, truth, rtol=0, atol=1e-5)
    assert len(steps) == 7


def test_who_watches_the_decoder_still_sees_states() -> None:
    graph = grid(0)
    model, x = single(4, graph, **EXPECTED)
    seen: list[Tensor] = []
    model.decoder.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    model.predict(x, graph.edge_index())
    assert seen
