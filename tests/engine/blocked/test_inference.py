"""Inference by blocks against inference on the whole graph."""

from __future__ import annotations

import copy
import gc
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from eegnn import EEGNN, SASGNN, Exits
from eegnn.engine.blocked import Blocks, infer, partition
from eegnn.engine.blocked.inference import _Inference
from eegnn.nn.exits import ExitRecorder
from eegnn.nn.model import GraphModel
from eegnn.zoo.early import EEModel
from eegnn.zoo.gcn import GCN
from tests.engine.blocked.examples import GRAPHS, ring
from tests.nn.exit_examples import HIDDEN, IN, OUT, Config, features, make
from tests.transcription import Graph

AFTER_EXIT = ["evolve", "freeze"]


def cut(graph: Graph, count: int) -> Blocks:
    return partition(graph.edge_index(), graph.num_nodes, count)


def assert_same(found: tuple[Tensor, Exits], truth: tuple[Tensor, Exits], tolerance: float) -> None:
    (out, exits), (whole, whole_exits) = found, truth
    assert torch.equal(exits.layer, whole_exits.layer)
    assert exits.num_layers == whole_exits.num_layers
    torch.testing.assert_close(out, whole, rtol=0, atol=tolerance)
    torch.testing.assert_close(exits.time, whole_exits.time, rtol=0, atol=10 * tolerance)
    torch.testing.assert_close(exits.cost, whole_exits.cost)
    assert exits.tau.shape == whole_exits.tau.shape
    # The step size of a node that has left is 0 where its block was skipped.
    step = torch.arange(len(exits.tau)).unsqueeze(-1)
    skipped = (exits.tau == 0) & (step >= exits.layer)
    whole_tau = whole_exits.tau.masked_fill(skipped, 0.0)
    torch.testing.assert_close(exits.tau, whole_tau, rtol=0, atol=10 * tolerance)


@pytest.mark.parametrize("after_exit", AFTER_EXIT)
@pytest.mark.parametrize("name", GRAPHS)
def test_it_equals_predict(name: str, after_exit: str) -> None:
    spread = 0
    for seed, count in ((7, 1), (37, 3), (43, 9), (77, 9)):
        graph = GRAPHS[name](seed)
        model, x = make(seed, after_exit=after_exit), features(seed, graph.num_nodes)
        truth = model.predict(x, graph.edge_index())
        assert_same(infer(model, x, cut(graph, count)), truth, 1e-10)
        spread += truth[1].layer.unique().numel() > 2
    assert spread >= 2


KNOBS: list[dict[str, Any]] = [
    {"max_layers": 1},
    {"max_layers": 3},
    {"exit_threshold": 0.0},
    {"exit_threshold": 0.05},
    {"exit_threshold": 0.9},
    {"exit_threshold": 1.0},
    {"max_layers": 4, "exit_threshold": 0.3},
]


@pytest.mark.parametrize("after_exit", AFTER_EXIT)
@pytest.mark.parametrize("knobs", KNOBS, ids=str)
def test_the_knobs_of_predict_work(knobs: dict[str, Any], after_exit: str) -> None:
    for name in ("ring", "sparse"):
        graph = GRAPHS[name](43)
        model, x = make(43, after_exit=after_exit), features(43, graph.num_nodes)
        truth = model.predict(x, graph.edge_index(), **knobs)
        assert_same(infer(model, x, cut(graph, 6), **knobs), truth, 1e-10)


CONFIGS: dict[str, Config] = {
    "fixed step": {"step_size": 0.7},
    "two-layer heads": {"head_layers": 2, "head_channels": 4},
    "three-layer sas heads": {"confidence": "sas", "head_channels": 4, "head_layers": 3},
    "mlp heads": {"confidence": "mlp"},
    "edge features": {"edge_dim": 2},
    "deep decoder": {"decoder_layers": 2},
}


@pytest.mark.parametrize("after_exit", AFTER_EXIT)
@pytest.mark.parametrize("name", CONFIGS)
def test_it_equals_predict_of_other_models(name: str, after_exit: str) -> None:
    graph = GRAPHS["sparse"](5)
    x, blocks = features(5, graph.num_nodes), cut(graph, 7)
    attr = features(9, 2 * len(graph.edges), 2) if name == "edge features" else None
    model = make(43, after_exit=after_exit, **CONFIGS[name])
    truth = model.predict(x, graph.edge_index(), attr)
    assert_same(infer(model, x, blocks, attr), truth, 1e-10)


@pytest.mark.parametrize(
    "options", [{}, {"shared": False}, {"edge_dim": 2}, {"activation": "tanh"}], ids=str
)
def test_sasgnn(options: dict[str, Any]) -> None:
    graph = GRAPHS["sparse"](1)
    x, blocks = features(1, graph.num_nodes), cut(graph, 6)
    attr = features(9, 2 * len(graph.edges), 2) if "edge_dim" in options else None
    torch.manual_seed(0)
    model = SASGNN(IN, HIDDEN, OUT, num_layers=5, **options).double()
    calls: list[dict[str, Any]] = [{}, {"max_layers": 2}, {"max_layers": 1}]
    for knobs in calls:
        truth = model.predict(x, graph.edge_index(), attr, **knobs)
        assert_same(infer(model, x, blocks, attr, **knobs), truth, 1e-10)


@pytest.mark.parametrize("after_exit", AFTER_EXIT)
@pytest.mark.parametrize("seed", range(3))
def test_in_float32_the_difference_is_that_of_rounding(seed: int, after_exit: str) -> None:
    graph = GRAPHS["sparse"](seed)
    model = make(seed, after_exit=after_exit, num_layers=12).float()
    x = features(seed, graph.num_nodes).float()
    truth = model.predict(x, graph.edge_index())
    assert_same(infer(model, x, cut(graph, 6)), truth, 1e-5)


def test_graphs_without_features_or_nodes_work() -> None:
    graph = ring()
    model = EEGNN(0, 4, 2, num_layers=3)
    assert_same(infer(model, None, cut(graph, 4)), model.predict(None, graph.edge_index()), 1e-6)
    nothing = Graph([], 0)
    out, exits = infer(model, None, cut(nothing, 1))
    assert out.shape == (0, 2)
    assert exits.layer.numel() == 0


class Staying:
    """On a ring, nodes 0, 1, 2 stay to the end and all others leave after the first step."""

    def __init__(self, after_exit: str) -> None:
        self.graph = ring()
        # States do not change: the first of them is the feature, and it decides.
        self.model = make(0, after_exit=after_exit, confidence="mlp")
        self.x = torch.zeros(60, IN, dtype=torch.float64)
        self.x[:3, 0] = 1
        last = self.model.loop.confidence.head.lins[-1]  # type: ignore[attr-defined]
        with torch.no_grad():
            still = self.model.encoder.parameters(), self.model.loop.step.parameters()
            for part in (*still[0], *still[1], last.weight):
                part.zero_()
            self.model.encoder.weight[0, 0] = 1
            last.weight[0, 0] = 2
            last.bias.copy_(torch.tensor([-1.0, 0.0]))


@pytest.mark.parametrize("after_exit", AFTER_EXIT)
def test_blocks_are_skipped_once_they_do_not_matter(
    after_exit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    case, visits = Staying(after_exit), [0] * 6
    blocks = cut(case.graph, 12)
    record = ExitRecorder.step

    def counted(self: ExitRecorder, *given: Any) -> None:
        visits[len(self.tau)] += 1
        record(self, *given)

    monkeypatch.setattr(ExitRecorder, "step", counted)
    _, exits = infer(case.model, case.x, blocks)
    assert exits.layer.tolist() == [6] * 3 + [1] * 57
    block = [set(core.tolist()) for core in blocks.cores]
    expected = []
    for layer in range(6):
        needed = {b for b in range(12) if layer == 0 or block[b] & {0, 1, 2}}
        if after_exit == "evolve":
            for _ in range(6 - layer - 1):  # blocks that touch one of them
                edge = {j for b in needed for i in block[b] for j in case.graph.neighbours(i)}
                needed |= {b for b in range(12) if block[b] & edge}
        expected.append(len(needed))
    assert visits == expected
    assert visits[-1] < 4 < visits[0]


def test_the_loop_ends_when_everyone_has_left() -> None:
    model = EEGNN(IN, HIDDEN, OUT, num_layers=50, continue_bias=-1.0).double()
    _, exits = infer(model, features(0, 60), cut(ring(), 5))
    assert len(exits.tau) == int(exits.layer.max()) < 50


class Largest(TorchDispatchMode):
    """Notes the most rows of states that any operator returns, apart from those in files."""

    def __init__(self, files: int) -> None:
        super().__init__()
        self.rows, self.files = 0, files

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        for value in out if isinstance(out, tuple | list) else (out,):
            wide = isinstance(value, Tensor) and value.dim() == 2 and HIDDEN in value.shape
            if wide and value.untyped_storage().nbytes() != self.files:
                self.rows = max(self.rows, value.numel() // HIDDEN)
        return out


def test_no_tensor_holds_the_states_of_more_than_a_block() -> None:
    graph = ring(n=600)
    model, x = make(77, dropout=0.1), features(77, 600)
    blocks = cut(graph, 20)
    with Largest(600 * HIDDEN * 8) as largest:
        infer(model, x, blocks)
    assert 30 <= largest.rows <= max(block.nodes.numel() for block in blocks)
    with Largest(-1) as largest:
        model.predict(x, graph.edge_index())
    assert largest.rows >= 600


def living_rows(files: int) -> int:
    """Rows of states in all tensors that are alive, apart from those in files."""
    found = {}
    for value in gc.get_objects():
        tensor = issubclass(type(value), Tensor)  # isinstance wakes lazy objects, which warn
        if not (tensor and value.layout == torch.strided):
            continue
        if value.dim() == 2 and value.size(1) == HIDDEN:
            storage = value.untyped_storage()
            if storage.nbytes() != files:
                found[storage.data_ptr()] = storage.nbytes() // (8 * HIDDEN)
    return sum(found.values())


def test_the_states_of_a_block_are_let_go_before_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, blocks = ring(n=600), cut(ring(n=600), 20)
    model, files = make(77), 600 * HIDDEN * 8
    x = torch.randn(600, IN, dtype=torch.float64)
    before, alive = living_rows(files), []
    visit = _Inference._visit

    def counted(self: _Inference, index: int, layer: int) -> None:
        if index == 19:
            alive.append(living_rows(files))
        visit(self, index, layer)

    monkeypatch.setattr(_Inference, "_visit", counted)
    infer(model, x, blocks)
    assert len(alive) > 2
    assert max(alive) - before < 5 * max(block.nodes.numel() for block in blocks)
    assert graph.num_nodes > 5 * max(block.nodes.numel() for block in blocks)


REFUSED: dict[str, tuple[GraphModel, str]] = {
    "zoo": (GCN(IN, 4, 2, 2), "blocks need model eegnn or sasgnn, got GCN"),
    "exits of the zoo": (EEModel(IN, 4, 2, 2), "got EEModel"),
    "graphs": (EEGNN(IN, 4, 2, 2, level="graph"), "level='node'"),
    "mean step": (EEGNN(IN, 4, 2, 2, step_size="mean"), "step_size='mean'"),
    "solver": (SASGNN(IN, 4, 2, 2, solver="rk4"), "solver='euler', got 'rk4'"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_models_that_do_not_go_by_blocks_are_refused(name: str) -> None:
    model, message = REFUSED[name]
    with pytest.raises(ValueError, match=message):
        infer(model, features(0, 60).float(), cut(ring(), 3))


def test_inputs_are_checked_as_by_predict() -> None:
    model, blocks = make(0), cut(ring(), 3)
    with pytest.raises(ValueError, match=r"x must have shape \[60, 3\], got \[59, 3\]"):
        infer(model, features(0, 59), blocks)
    bad = features(0, 60)
    bad[7, 1] = torch.nan
    with pytest.raises(ValueError, match="first in row 7"):
        infer(model, bad, blocks)
    with pytest.raises(ValueError, match="exit_threshold"):
        infer(SASGNN(IN, 4, 2), features(0, 60).float(), blocks, exit_threshold=0.5)


def test_the_model_and_the_features_are_left_as_they_were() -> None:
    model, x = make(4).train(), features(4, 60)
    state, before = copy.deepcopy(model.state_dict()), x.clone()
    infer(model, x, cut(ring(), 4))
    assert model.training
    assert torch.equal(x, before)
    for key, value in model.state_dict().items():
        assert torch.equal(value, state[key])
