"""Hooks on the modules of a model are called, whatever path would be the fast one."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.nn import GCNConv, summary

from eegnn import EEGNN, SASGNN, EarlyExit
from eegnn.engine.blocked import infer, partition
from eegnn.nn.heads import MLP, Confidence, MeanGNN, Temperature
from eegnn.nn.hooks import is_hooked

N, WIDTH, LAYERS = 30, 5, 4
EDGES = torch.cat(
    [torch.stack([torch.arange(N - 1), torch.arange(1, N)])[order] for order in ([0, 1], [1, 0])],
    dim=1,
)
PARTS = ["encoder", "decoder", "loop", "loop.step", "loop.confidence", "loop.temperature"]
HEADS = ["loop.confidence.head", "loop.temperature.head"]


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


def model(**options: Any) -> EEGNN:
    return EEGNN(WIDTH, 8, 3, LAYERS, **options)


def watched(net: nn.Module, names: list[str]) -> dict[str, list[tuple[Any, Any]]]:
    """Count the calls of these modules from now on, with what went in and out."""
    calls: dict[str, list[tuple[Any, Any]]] = {name: [] for name in names}
    for name in names:
        net.get_submodule(name).register_forward_hook(
            lambda module, given, out, name=name: calls[name].append((given, out))
        )
    return calls


@pytest.mark.parametrize(
    "options", [{}, {"level": "graph"}, {"edge_dim": 2}, {"confidence": "sas"}]
)
@pytest.mark.parametrize("training", [False, True])
def test_hooks_are_called_at_every_step_and_change_nothing(
    options: dict[str, Any], training: bool
) -> None:
    net, x = model(**options).train(training), torch.randn(N, WIDTH)
    attr = torch.randn(EDGES.size(1), 2) if "edge_dim" in options else None

    def run() -> tuple[Tensor, Any]:
        torch.manual_seed(1)
        with torch.set_grad_enabled(training):
            return net(x, EDGES, attr, return_exits=True)

    plain, exits = run()
    assert exits.backend == ("reference" if training else "pruned")
    calls = watched(net, PARTS + HEADS)
    out, exits = run()
    assert exits.backend == "reference"
    torch.testing.assert_close(out, plain)
    steps = exits.tau.size(0)
    assert {name: len(found) for name, found in calls.items()} == {
        name: 1 if name in ("encoder", "decoder", "loop") else steps for name in PARTS + HEADS
    }
    given, change = calls["loop.step"][0]
    assert given[0].shape == change.shape == (N, 8)


def test_a_hook_may_change_what_a_module_returns() -> None:
    net, x = model().eval(), torch.randn(N, WIDTH)
    h = net.encoder(x)
    handle = net.loop.step.register_forward_hook(lambda module, given, out: torch.zeros_like(out))
    with torch.no_grad():
        torch.testing.assert_close(net(x, EDGES), net.decoder(h))
    handle.remove()
    assert not is_hooked(net)
    assert not torch.equal(net(x, EDGES), net.decoder(h))


@pytest.mark.parametrize(
    "hook", ["full_backward_hook", "full_backward_pre_hook", "forward_pre_hook"]
)
def test_hooks_of_every_kind_are_called(hook: str) -> None:
    net, called = model(), []
    getattr(net.loop.step, f"register_{hook}")(lambda module, *given: called.append(module))
    net(torch.randn(N, WIDTH).requires_grad_(), EDGES).sum().backward()
    assert called == [net.loop.step] * LAYERS


def test_explain_backend_names_the_hooks() -> None:
    net, x = model(), torch.randn(N, WIDTH)
    assert net.explain_backend(x, EDGES).startswith("pruned: ")
    watched(net, ["encoder", "decoder", "loop"])  # called on every path
    assert net.explain_backend(x, EDGES).startswith("pruned: ")
    watched(net, ["loop.confidence.head"])
    assert net.explain_backend(x, EDGES) == (
        "reference: hooks are registered: modules are called, with every unit"
    )


@pytest.mark.parametrize("solver", ["euler", "rk4"])
def test_layers_of_fixed_depth_have_hooks_too(solver: str) -> None:
    net, x = SASGNN(WIDTH, 8, 3, LAYERS, solver=solver).eval(), torch.randn(N, WIDTH)
    with torch.no_grad():
        plain = net(x, EDGES)
        calls = watched(net, ["convs.0"])["convs.0"]
        torch.testing.assert_close(net(x, EDGES), plain)
    assert len(calls) == (LAYERS if solver == "euler" else 4 * LAYERS)


def test_a_convolution_in_a_loop_has_hooks() -> None:
    loop = EarlyExit(
        GCNConv(WIDTH, WIDTH),
        Confidence(MeanGNN(WIDTH, 4, 2)),
        Temperature(MLP(WIDTH, 4, 1)),
        LAYERS,
        "graph",
    ).eval()
    calls = watched(loop, ["step.conv", "confidence"])
    with torch.no_grad():
        _, exits = loop(torch.randn(N, WIDTH), EDGES)
    assert [len(found) for found in calls.values()] == [exits.tau.size(0)] * 2


def test_blocks_refuse_hooks_that_they_would_not_call() -> None:
    net = model()
    blocks = partition(EDGES, N, 2)
    watched(net, ["loop.step"])
    with pytest.raises(ValueError, match=r"would not call their hooks"):
        infer(net, torch.randn(N, WIDTH), blocks)


def test_the_summary_of_pyg_has_a_shape_for_every_part() -> None:
    pytest.importorskip("tabulate", reason="needs tabulate")
    text = summary(model(), torch.randn(N, WIDTH), EDGES, max_depth=2)
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines()[3:-1]]
    shapes = {name.split(")")[-1]: (given, out) for name, given, out, _ in rows}
    assert shapes["EEGNN"] == (f"[{N}, {WIDTH}], [2, {EDGES.size(1)}]", f"[{N}, 3]")
    assert shapes["SASConv"] == (f"[{N}, 8]", f"[{N}, 8]")
    assert shapes["Confidence"] == (f"[{N}, 8]", f"[{N}, 2]")
    assert shapes["Temperature"] == (f"[{N}, 8]", f"[{N}]")
    assert not [name for name, (given, _) in shapes.items() if given == "--"]
