"""The exit loop around any step: PyG convolutions, lists of them, plain functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.nn import GCN, GATConv, GCNConv, SAGEConv, Sequential

from eegnn import Adjacency, EarlyExit
from eegnn.nn.heads import Confidence, Temperature
from tests.nn.exit_examples import HIDDEN, connected_or_not, features, heads, with_isolated_nodes
from tests.transcription import Graph


def by_hand(
    steps: list[Callable[[Tensor], Tensor]],
    confidence: Confidence,
    temperature: Temperature,
    h: Tensor,
    graph: Graph,
) -> tuple[Tensor, list[int]]:
    """Algorithm 1 with any step, without noise, from numbers and a dense D⁻¹A."""
    a = torch.zeros(graph.num_nodes, graph.num_nodes, dtype=torch.float64)
    for u, v in graph.edges:
        a[u, v] = a[v, u] = 1
    mean = a / a.sum(1, keepdim=True).clamp(min=1)
    f_c, f_nu = dict(confidence.named_parameters()), dict(temperature.named_parameters())
    state, layer = h.clone(), [0] * graph.num_nodes
    for count, step in enumerate(steps, start=1):
        c = torch.cat([h, mean @ h], dim=1) @ f_c["head.lins.0.weight"].T + f_c["head.lins.0.bias"]
        inverse = (1 + (h @ f_nu["head.lins.0.weight"].T).exp()).log() + temperature.nu0
        h = h + (c * inverse).softmax(dim=1)[:, :1] * step(h)
        for i in range(graph.num_nodes):
            if not layer[i] and (c[i, 1] > c[i, 0] or count == len(steps)):
                layer[i], state[i] = count, h[i]
    return state, layer


def assert_equals_the_loop_by_hand(
    step: Any, functions: list[Callable[[Tensor], Tensor]], graph: Graph
) -> None:
    found: set[int] = set()
    for seed in range(6):
        confidence, temperature = heads(seed)
        loop = EarlyExit(step, confidence, temperature, len(functions)).eval()
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
    "Sequential": lambda: Sequential(
        "x, edge_index", [(GCNConv(HIDDEN, HIDDEN), "x, edge_index -> x"), nn.ReLU()]
    ),
    "a network of two layers": lambda: GCN(HIDDEN, HIDDEN, 2),
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
    loop = EarlyExit(conv, *heads(0), 4).double()
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
