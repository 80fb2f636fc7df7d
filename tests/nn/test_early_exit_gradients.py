from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call

from eegnn import EEGNN, Adjacency, Exits, SASConv
from tests.nn.exit_examples import Config, batch_of_graphs, features, make, with_isolated_nodes
from tests.nn.model_examples import lively
from tests.transcription import Graph


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


CONFIGS: dict[str, Config] = {
    "default": {},
    "freeze": {"after_exit": "freeze"},
    "mean step": {"step_size": "mean"},
    "fixed step": {"step_size": 0.7},
    "two-layer heads": {"head_layers": 2, "head_channels": 4},
    "sas heads": {"confidence": "sas", "head_channels": 6},
}
LEVELS = pytest.mark.parametrize("level", ["node", "graph"])


def undecided(seed: int, **config: Any) -> EEGNN:
    """A model in which the noise decides as much as the heads do."""
    return lively(make(seed, **config), scale=2.0, continue_bias=1.0)


@LEVELS
@pytest.mark.parametrize("name", [name for name in CONFIGS if name != "mean step"])
def test_gradients_of_the_loop_agree_with_finite_differences(name: str, level: str) -> None:
    model, x = undecided(4, num_layers=3, level=level, **CONFIGS[name]), features(4, 7)

    def spread(seed: int) -> bool:
        torch.manual_seed(seed)
        exits = model(x, SMALL.edge_index(), batch=SMALL.batch(), return_exits=True)[1]
        return len(exits.layer.unique()) > 1

    check_gradients(model, output_and_cost(SMALL, x, next(filter(spread, range(20)))))


def test_gradients_of_the_mean_step_agree_with_finite_differences() -> None:
    model = undecided(4, num_layers=3, step_size="mean")
    check_gradients(model, output_and_cost(SMALL, features(4, 7), 6))


@LEVELS
def test_a_unit_that_leaves_after_the_first_step_sends_a_gradient_into_the_loop(level: str) -> None:
    graph = batch_of_graphs(43)
    model, x = undecided(43, level=level), features(43, graph.num_nodes)
    torch.manual_seed(0)
    out, exits = model(x, graph.edge_index(), batch=graph.batch(), return_exits=True)
    first = exits.layer == 1
    assert 0 < int(first.sum()) < first.numel()
    out[first].square().sum().backward()
    parameters = dict(model.loop.named_parameters())
    assert {name.rsplit(".")[0] for name in parameters} == {"step", "confidence", "temperature"}
    for name, p in parameters.items():
        assert p.grad is not None, name
        assert p.grad.abs().max() > 1e-6, name


def learned(recompute: bool, dropout: float, **config: Any) -> tuple[Tensor, Exits, list[Tensor]]:
    """Output, exits, and the gradients of a loss of output and cost."""
    graph = batch_of_graphs(43)
    model = undecided(43, recompute=recompute, dropout=dropout, **config)
    torch.manual_seed(1)
    x = features(43, graph.num_nodes).requires_grad_()
    out, exits = model(x, graph.edge_index(), batch=graph.batch(), return_exits=True)
    loss = out.square().sum() + 3 * exits.cost
    return out.detach(), exits, list(torch.autograd.grad(loss, [x, *model.parameters()]))


@LEVELS
@pytest.mark.parametrize("dropout", [0.0, 0.3])
@pytest.mark.parametrize("name", [name for name in CONFIGS if name != "fixed step"])
def test_recompute_changes_neither_outputs_nor_gradients(
    name: str, dropout: float, level: str
) -> None:
    if name == "mean step":
        level = "node"  # a graph has a single τ
    kept, again = (learned(r, dropout, level=level, **CONFIGS[name]) for r in (False, True))
    assert len(kept[1].layer.unique()) > 1
    assert torch.equal(again[0], kept[0])
    for field in ("layer", "time", "tau"):
        assert torch.equal(getattr(again[1], field), getattr(kept[1], field))
    for one, other in zip(again[2], kept[2], strict=True):
        assert other.any()
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-12)
