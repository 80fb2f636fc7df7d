from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call

from eegnn import Adjacency, SASConv
from tests.nn.exit_examples import (
    EXPECTED,
    SAMPLED,
    connected_or_not,
    features,
    last_bias_gradient,
    make,
    with_isolated_nodes,
)
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
