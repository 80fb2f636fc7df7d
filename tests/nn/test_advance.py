"""Training that keeps the states and computes the rest again."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from eegnn import EEGNN, SASGNN
from tests.nn.exit_examples import batch_of_graphs, features

KINDS: dict[str, tuple[Any, dict[str, Any]]] = {
    "SASGNN": (SASGNN, {}),
    "SASGNN with dropout": (SASGNN, {"conv_dropout": 0.3}),
    "SASGNN with tanh": (SASGNN, {"activation": "tanh"}),
    "SASGNN, a weight for each layer": (SASGNN, {"shared": False}),
    "EEGNN": (EEGNN, {}),
    "EEGNN with a fixed step": (EEGNN, {"step_size": 0.7}),
    "EEGNN with larger heads": (EEGNN, {"head_layers": 2}),
    "EEGNN, frozen": (EEGNN, {"after_exit": "freeze"}),
}


def gradients(kind: str, level: str, recompute: bool) -> tuple[Tensor, list[Tensor], int]:
    """Output, gradients, and entries of width 8 that autograd keeps."""
    build, options = KINDS[kind]
    graph = batch_of_graphs(1)
    torch.manual_seed(0)
    model = build(3, 8, 2, num_layers=5, level=level, recompute=recompute, **options).double()
    kept: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:
        if tensor.dim() == 2 and tensor.shape == (graph.num_nodes, 8):
            kept[tensor.data_ptr()] = tensor.numel()
        return tensor

    torch.manual_seed(1)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        out = model(features(1, graph.num_nodes), graph.edge_index(), batch=graph.batch())
    out.square().sum().backward()
    found = [p.grad if p.grad is not None else torch.zeros(()) for p in model.parameters()]
    return out.detach(), found, sum(kept.values()) // (8 * graph.num_nodes)


@pytest.mark.parametrize("level", ["node", "graph"])
@pytest.mark.parametrize("kind", KINDS)
def test_gradients_are_the_same(kind: str, level: str) -> None:
    plain, again = (gradients(kind, level, recompute) for recompute in (False, True))
    torch.testing.assert_close(again[0], plain[0], rtol=0, atol=1e-12)
    for a, b in zip(again[1], plain[1], strict=True):
        torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_a_state_is_kept_for_each_layer_and_little_else(kind: str) -> None:
    plain, again = (gradients(kind, "node", recompute)[2] for recompute in (False, True))
    assert again <= 5 + 3
    assert plain >= 5 * 3


@pytest.mark.parametrize("build", [SASGNN, EEGNN])
def test_edge_features_have_the_same_gradients(build: Any) -> None:
    graph = batch_of_graphs(1)
    attr = features(2, 2 * len(graph.edges), 2).requires_grad_()
    found = []
    for recompute in (False, True):
        torch.manual_seed(0)
        model = build(3, 8, 2, num_layers=4, edge_dim=2, recompute=recompute).double()
        out = model(features(1, graph.num_nodes), graph.edge_index(), attr)
        found.append(torch.autograd.grad(out.square().sum(), [attr, *model.parameters()]))
    for plain, again in zip(*found, strict=True):
        torch.testing.assert_close(again, plain, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("build", [SASGNN, EEGNN])
def test_recompute_must_be_true_or_false(build: Any) -> None:
    with pytest.raises(TypeError, match="recompute must be True or False, got 1"):
        build(3, 8, 2, recompute=1)
