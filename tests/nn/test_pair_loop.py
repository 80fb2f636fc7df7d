"""The exit loop for pairs of nodes against its transcription, and what must not change answers."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch_geometric.nn import GCNConv

from eegnn import EEGNN, SASGNN, EarlyExit, Exits
from eegnn.nn.heads import MLP, Confidence, Temperature
from tests import transcription
from tests.nn.exit_examples import GRAPHS, HIDDEN, IN, Config, L, connected_or_not, features
from tests.nn.model_examples import lively
from tests.nn.test_early_exit import assert_same, noise
from tests.nn.test_early_exit_gradients import check_gradients
from tests.pair_transcription import run_pairs
from tests.transcription import Edge, Graph

#: With the first one, pairs leave at different layers in every configuration.
SEEDS = [5, 0, 1]
CONFIGS: dict[str, Config] = {
    "dot": {"pool": "dot"},
    "hadamard": {"pool": "hadamard"},
    "DistMult": {"pool": "hadamard", "out_channels": 4},
    "hadamard, MLP": {"pool": "hadamard", "decoder_layers": 2},
    "concat, two-layer heads": {"pool": "concat", "head_layers": 2, "head_channels": 4},
    "small steps": {"pool": "concat", "step_size": 0.3},
}
NAMES = pytest.mark.parametrize("name", CONFIGS)
EACH_SEED = pytest.mark.parametrize("seed", SEEDS)


def make(seed: int, **config: Any) -> EEGNN:
    """A model whose heads are drawn with large weights."""
    torch.manual_seed(seed)
    config = {"out_channels": 1, "num_layers": L, "nu0": 0.3, **config}
    model = EEGNN(IN, HIDDEN, level="edge", **config).double()
    return lively(model, scale=6.0, continue_bias=2.0)


def some_pairs(seed: int, n: int, count: int = 9) -> list[Edge]:
    """Pairs of any two nodes, one of them twice, and one node with itself."""
    rng = random.Random(seed)
    pairs = [(rng.randrange(n), rng.randrange(n)) for _ in range(count - 2)]
    return [*pairs, pairs[0], (1, 1)]


def tensor(pairs: list[Edge]) -> Tensor:
    return torch.tensor(pairs).T.contiguous()


def transcribed(
    model: EEGNN, graph: Graph, x: Tensor, pairs: list[Edge], **options: Any
) -> transcription.Outcome:
    step_size = 1.0 if model.step_size == "adaptive" else float(model.step_size)
    return run_pairs(
        transcription.read(model),
        graph,
        x.numpy(),
        pairs,
        num_layers=model.num_layers,
        pool=model.pool,
        step_size=step_size,
        **options,
    )


KNOBS: list[dict[str, Any]] = [{}, {"max_layers": 3}, {"exit_threshold": 0.7}]


@EACH_SEED
@pytest.mark.parametrize("shape", GRAPHS)
@NAMES
def test_evaluation_is_the_transcribed_loop(name: str, shape: str, seed: int) -> None:
    graph = GRAPHS[shape](seed)
    model, x = make(seed, **CONFIGS[name]).eval(), features(seed, graph.num_nodes)
    pairs = some_pairs(seed, graph.num_nodes)
    for knobs in KNOBS:
        found = model.predict(x, graph.edge_index(), edge_label_index=tensor(pairs), **knobs)
        assert_same(*found, transcribed(model, graph, x, pairs, **knobs))


@EACH_SEED
@NAMES
def test_training_is_the_transcribed_loop_with_noise(name: str, seed: int) -> None:
    graph = connected_or_not(seed)
    model, x = make(seed, **CONFIGS[name]), features(seed, graph.num_nodes)
    pairs = some_pairs(seed, graph.num_nodes)
    drawn = noise(seed, len(pairs))
    torch.manual_seed(seed)
    out, exits = model(x, graph.edge_index(), edge_label_index=tensor(pairs), return_exits=True)
    assert_same(out, exits, transcribed(model, graph, x, pairs, training=True, noise=drawn))
    assert seed != SEEDS[0] or len(exits.layer.unique()) > 1


def predicted(model: EEGNN, graph: Graph, x: Tensor, pairs: Tensor) -> tuple[Tensor, Exits]:
    return model.predict(x, graph.edge_index(), edge_label_index=pairs)


@NAMES
def test_swapping_the_ends_changes_nothing(name: str) -> None:
    graph, x = connected_or_not(3), features(3, 11)
    model, pairs = make(3, **CONFIGS[name]), tensor(some_pairs(3, 11))
    out, exits = predicted(model, graph, x, pairs)
    swapped, others = predicted(model, graph, x, pairs.flip(0))
    torch.testing.assert_close(swapped, out, rtol=0, atol=1e-12)
    assert torch.equal(others.layer, exits.layer)
    torch.testing.assert_close(others.tau, exits.tau, rtol=0, atol=1e-12)


@NAMES
def test_renumbering_the_nodes_changes_nothing(name: str) -> None:
    graph, x, order = connected_or_not(3), features(3, 11), torch.randperm(11)
    number = order.argsort()  # node order[k] becomes node k
    renamed = Graph([(int(number[u]), int(number[v])) for u, v in graph.edges], 11)
    model, pairs = make(3, **CONFIGS[name]), tensor(some_pairs(3, 11))
    out, exits = predicted(model, graph, x, pairs)
    moved, others = predicted(model, renamed, x[order], number[pairs])
    torch.testing.assert_close(moved, out, rtol=0, atol=1e-12)
    assert torch.equal(others.layer, exits.layer)


@pytest.mark.parametrize("training", [False, True], ids=["evaluation", "training"])
def test_an_answer_does_not_depend_on_the_other_pairs(training: bool) -> None:
    graph, x = connected_or_not(5), features(5, 11)
    model, pairs = make(5, pool="concat").train(training), tensor(some_pairs(5, 11, 20))

    def answers(some: Tensor) -> tuple[Tensor, Exits]:
        if not training:
            return predicted(model, graph, x, some)
        return model(x, graph.edge_index(), edge_label_index=some, return_exits=True)

    if training:
        model.loop.eval()  # without noise, with gradients
    out, exits = answers(pairs)
    assert len(exits.layer.unique()) > 2
    for p in range(pairs.size(1)):
        alone, exit_alone = answers(pairs[:, [p]])
        torch.testing.assert_close(alone[0], out[p], rtol=0, atol=1e-12)
        assert exit_alone.layer[0] == exits.layer[p]
        assert exit_alone.time[0].item() == pytest.approx(exits.time[p].item(), abs=1e-12)


SMALL = Graph([(0, 1), (1, 2), (1, 3), (2, 3), (5, 6)], 7)


@NAMES
def test_gradients_agree_with_finite_differences(name: str) -> None:
    model = lively(make(4, **{**CONFIGS[name], "num_layers": 3}), scale=2.0, continue_bias=1.0)
    x = features(4, 7)
    pairs = tensor([(0, 3), (1, 2), (5, 6), (4, 1), (2, 2)])

    def call(module: nn.Module, parameters: dict[str, Tensor]) -> Tensor:
        torch.manual_seed(2)  # the same noise at every evaluation
        given = {"edge_label_index": pairs, "return_exits": True}
        out, exits = functional_call(module, parameters, (x, SMALL.edge_index()), given)
        assert len(exits.layer.unique()) > 1
        return torch.cat([out.flatten(), exits.cost.view(1)])

    check_gradients(model, call)


def test_a_pair_that_leaves_after_the_first_step_teaches_the_heads() -> None:
    graph, x = connected_or_not(5), features(5, 11)
    model = make(5, pool="hadamard")
    torch.manual_seed(0)
    pairs = tensor(some_pairs(5, 11, 20))
    out, exits = model(x, graph.edge_index(), edge_label_index=pairs, return_exits=True)
    first = exits.layer == 1
    assert 0 < int(first.sum()) < first.numel()
    out[first].square().sum().backward()
    for name, parameter in model.loop.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().max() > 1e-6, name


def test_recompute_changes_neither_outputs_nor_gradients() -> None:
    found = []
    graph, x = connected_or_not(5), features(5, 11)
    for recompute in (False, True):
        model = make(5, pool="concat", recompute=recompute)
        torch.manual_seed(1)
        out = model(x, graph.edge_index(), edge_label_index=tensor(some_pairs(5, 11)))
        found.append([out.detach(), *torch.autograd.grad(out.sum(), list(model.parameters()))])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-12)


def test_no_pairs_get_no_answers() -> None:
    graph, none = connected_or_not(5), torch.zeros(2, 0, dtype=torch.int64)
    out, exits = predicted(make(5, pool="dot"), graph, features(5, 11), none)
    assert out.shape == (0, 1)
    assert exits.layer.shape == (0,)


def test_any_step_can_be_repeated_for_pairs() -> None:
    torch.manual_seed(0)
    confidence = Confidence(MLP(12, 4, 2), continue_bias=None)
    loop = EarlyExit(GCNConv(4, 4), confidence, Temperature(MLP(12, 4, 1)), 3, level="edge")
    h, graph = torch.rand(11, 4), connected_or_not(5)
    z, exits = loop(h, graph.edge_index(), edge_label_index=tensor([(0, 1), (4, 7)]))
    assert z.shape == (2, 8)
    assert exits.tau.shape[1] == 2


def test_heads_that_read_neighbors_are_refused() -> None:
    with pytest.raises(ValueError, match="heads must not read neighbors with level='edge'"):
        make(0, pool="dot", confidence="mean")


def test_a_model_of_fixed_depth_decodes_the_states_of_both_ends() -> None:
    torch.manual_seed(0)
    graph, x, pairs = connected_or_not(5), features(5, 11), tensor([(0, 1), (4, 4), (7, 2)])
    model = SASGNN(IN, HIDDEN, 2, 4, level="edge", pool="hadamard").double().eval()
    out, exits = model.predict(x, graph.edge_index(), edge_label_index=pairs)
    nodes = SASGNN(IN, HIDDEN, 2, 4).double().eval()
    nodes.load_state_dict(model.state_dict(), strict=False)
    h = nodes.embed(x, graph.edge_index()).detach().numpy()
    lin = model.decoder.mlp.lins[0]
    weight, bias = (value.detach().numpy() for value in (lin.weight, lin.bias))  # type: ignore
    for p, (i, j) in enumerate(pairs.T.tolist()):
        np.testing.assert_allclose(out[p], weight @ (h[i] * h[j]) + bias, atol=1e-12)
    assert exits.layer.tolist() == [4, 4, 4]


@pytest.mark.parametrize(
    ("pairs", "error", "message"),
    [
        (None, ValueError, "edge_label_index is needed with level='edge'"),
        (torch.tensor([[0], [11]]), ValueError, "must hold indices in 0 … 10, got 11"),
        (torch.tensor([[0], [-1]]), ValueError, "must hold indices in 0 … 10, got -1"),
        (torch.tensor([0, 1]), ValueError, r"edge_label_index must have shape \[2, E\], got \[2\]"),
        (torch.tensor([[0.0], [1.0]]), TypeError, "edge_label_index must have dtype int64"),
        ([[0], [1]], TypeError, "edge_label_index must be a torch.Tensor, got list"),
    ],
)
def test_wrong_pairs_are_refused_by_name(pairs: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make(0, pool="dot")(
            features(5, 11), connected_or_not(5).edge_index(), edge_label_index=pairs
        )


def test_pairs_are_refused_at_other_levels() -> None:
    model = EEGNN(IN, HIDDEN, 2, 3).double()
    with pytest.raises(ValueError, match="edge_label_index was given, but the model has level='no"):
        model(features(5, 11), SMALL.edge_index(), edge_label_index=tensor([(0, 1)]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "pool with level='edge' must be one of 'dot', 'hadamard', 'concat', got 'mean'"),
        ({"pool": "dot", "out_channels": 2}, "pool='dot' needs out_channels=1"),
        ({"pool": "dot", "decoder_layers": 2}, "pool='dot' needs out_channels=1"),
        ({"pool": "dot", "step_size": "mean"}, "step_size='mean' needs level='node'"),
    ],
)
def test_wrong_options_are_refused(options: Config, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(0, **options)
