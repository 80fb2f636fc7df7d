"""The mixture that keeps the states alone, against autograd over all exits."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from eegnn import EEGNN, Adjacency, Exits
from tests.nn.exit_examples import EXPECTED, HIDDEN, Config, batch_of_graphs, features, make

CONFIGS: dict[str, Config] = {
    "default": {},
    "frozen": {"after_exit": "freeze"},
    "leak": {"leak": 0.3},
    "labels": {"task": "multilabel"},
    "values": {"task": "regression"},
    "bias of exits": {"exit_bias": True},
    "fixed step": {"step_size": 0.7},
    "larger heads": {"head_layers": 2, "head_norm": True},
    "tanh": {"activation": "tanh"},
    "deep decoder": {"decoder_layers": 2, "decoder_bias": True},
}


def trained(
    seed: int, max_weight: float, recompute: bool, **config: Any
) -> tuple[Tensor, Exits, list[Tensor | None]]:
    """Outputs, exits, and the gradients of a loss that depends on all that can be learned from."""
    graph = batch_of_graphs(seed)
    model = make(seed, **{**EXPECTED, **config}, recompute=recompute)
    torch.manual_seed(1)
    x = features(seed, graph.num_nodes)
    out, exits = model(x, graph.edge_index(), batch=graph.batch(), return_exits=True)
    assert exits.outputs is not None
    loss = out.square().sum() + 3 * exits.cost + max_weight * exits.outputs[-1].pow(3).sum()
    wanted = list(model.parameters())
    return out.detach(), exits, list(torch.autograd.grad(loss, wanted, allow_unused=True))


@pytest.mark.parametrize("level", ["node", "graph"])
@pytest.mark.parametrize("name", CONFIGS)
def test_outputs_exits_and_gradients_are_the_same(name: str, level: str) -> None:
    for seed in (1, 4, 77):
        plain, again = (
            trained(seed, 0.5, recompute, level=level, **CONFIGS[name])
            for recompute in (False, True)
        )
        torch.testing.assert_close(again[0], plain[0], rtol=0, atol=1e-10)
        assert torch.equal(again[1].layer, plain[1].layer)
        for field in ("time", "tau", "cost"):
            one, other = (getattr(found[1], field).detach() for found in (again, plain))
            torch.testing.assert_close(one, other, rtol=0, atol=1e-10)
        assert plain[1].outputs is not None
        torch.testing.assert_close(again[1].outputs, plain[1].outputs[-1:], rtol=0, atol=1e-10)
        for a, b in zip(again[2], plain[2], strict=True):
            if b is not None and bool(b.any()):
                torch.testing.assert_close(a, b, rtol=1e-8, atol=1e-10)
            else:
                assert a is None or not a.any()


@pytest.mark.parametrize("level", ["node", "graph"])
def test_what_dropout_drew_is_drawn_again(level: str) -> None:
    """Against finite differences: the plain loop draws in another order."""
    graph = batch_of_graphs(4)
    config: Config = {"dropout": 0.3, "conv_dropout": 0.2, "activation": "tanh"}
    model = make(4, **EXPECTED, **config, level=level, recompute=True)
    weights = list(model.parameters())

    def loss() -> Tensor:
        torch.manual_seed(1)
        x = features(4, graph.num_nodes)
        out, exits = model(x, graph.edge_index(), batch=graph.batch(), return_exits=True)
        return out.square().sum() + 3 * exits.cost

    gradients = torch.autograd.grad(loss(), weights)
    torch.manual_seed(2)
    direction = [torch.randn_like(weight) for weight in weights]
    slope = sum(float((g * d).sum()) for g, d in zip(gradients, direction, strict=True))
    start = [weight.detach().clone() for weight in weights]
    moved = []
    for size in (1e-6, -1e-6):
        with torch.no_grad():
            for weight, at, d in zip(weights, start, direction, strict=True):
                weight.copy_(at + size * d)
        moved.append(float(loss()))
    assert slope == pytest.approx((moved[0] - moved[1]) / 2e-6, rel=1e-5)


def test_gradients_of_initial_states_and_edge_terms() -> None:
    graph, found = batch_of_graphs(4), []
    adj = Adjacency.from_edge_index(graph.edge_index(), graph.num_nodes)
    for recompute in (False, True):
        model = make(4, **EXPECTED, recompute=recompute, edge_dim=2)
        h = features(4, graph.num_nodes, HIDDEN).requires_grad_()
        attr = features(5, graph.edge_index().size(1), 2).requires_grad_()
        out, _ = model.loop(h, adj, attr, model.decoder)
        found.append(torch.autograd.grad(out.square().sum(), [h, attr]))
    for plain, again in zip(*found, strict=True):
        assert plain.any()
        torch.testing.assert_close(again, plain, rtol=1e-8, atol=1e-10)


def kept_bytes(layers: int, **config: Any) -> int:
    """Bytes that autograd keeps beyond the states."""
    torch.manual_seed(0)
    model = EEGNN(3, 8, 2, layers, recompute=True, **config)
    x = torch.rand(500, 3)
    edge_index = torch.randint(500, (2, 900), generator=torch.Generator().manual_seed(0))
    adj = Adjacency.from_edge_index(torch.cat([edge_index, edge_index.flip(0)], dim=1), 500)
    kept: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        out = model(x, adj)
    assert out.requires_grad
    return sum(kept.values()) - layers * 500 * 8 * 4


@pytest.mark.parametrize("config", [{}, {"after_exit": "freeze"}, {"dropout": 0.2}], ids=str)
def test_what_is_kept_does_not_grow_with_depth(config: dict[str, Any]) -> None:
    assert kept_bytes(60, **config) <= 1.05 * kept_bytes(6, **config)


def test_a_decoder_that_hides_its_weights_gets_its_gradients() -> None:
    """What is not a module may use anything: then autograd keeps what it needs."""
    graph = batch_of_graphs(4)
    adj = Adjacency.from_edge_index(graph.edge_index(), graph.num_nodes)
    weight = nn.Parameter(torch.randn(HIDDEN, 2, dtype=torch.float64))
    found = []
    for recompute in (False, True):
        model = make(4, **EXPECTED, recompute=recompute)
        out, _ = model.loop(features(4, graph.num_nodes, HIDDEN), adj, None, lambda h: h @ weight)
        found.append(torch.autograd.grad(out.square().sum(), weight)[0])
    torch.testing.assert_close(found[1], found[0], rtol=1e-8, atol=1e-10)


def test_single_precision_takes_the_fast_step() -> None:
    graph, found = batch_of_graphs(4), []
    for recompute in (False, True):
        model = make(4, **EXPECTED, recompute=recompute).float()
        out = model(features(4, graph.num_nodes).float(), graph.edge_index())
        found.append(torch.autograd.grad(out.square().sum(), list(model.parameters())))
    for plain, again in zip(*found, strict=True):
        torch.testing.assert_close(again, plain, rtol=1e-3, atol=1e-4)
