"""`model.embed`: the states at the exit, before the decoder."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from eegnn.zoo.apgcn import APGCN
from eegnn.zoo.gcn import GCN
from tests.nn.model_examples import EDGE_INDEX, KINDS, NUM_NODES, build, features

BATCH = torch.tensor([0, 0, 0, 0, 1, 1, 1])
PAIRS = torch.tensor([[0, 3, 6], [1, 5, 6]])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("options", "given", "shape"),
    [
        ({}, {}, (NUM_NODES, 8)),
        ({"level": "graph"}, {"batch": BATCH}, (2, 8)),
        ({"level": "edge", "pool": "hadamard"}, {"edge_label_index": PAIRS}, (3, 16)),
    ],
)
def test_decoding_the_embeddings_gives_the_predictions(
    kind: str, options: dict[str, Any], given: dict[str, Any], shape: tuple[int, int]
) -> None:
    model, x = build(kind, **options).eval(), features()
    states = model.embed(x, EDGE_INDEX, **given)
    assert states.shape == shape
    torch.testing.assert_close(model.decoder(states), model(x, EDGE_INDEX, **given))


def test_gradients_flow_through_embeddings() -> None:
    model = build("EEGNN")
    model.embed(features(), EDGE_INDEX).sum().backward()
    assert model.encoder.weight.grad is not None
    assert model.encoder.weight.grad.any()
    assert all(p.grad is None for p in model.decoder.parameters())


def test_embeddings_leave_no_hook_behind() -> None:
    model = GCN(5, 8, 3, 2)
    model.embed(features(), EDGE_INDEX)
    assert not model.decoder._forward_pre_hooks
    with pytest.raises(ValueError, match="edge_index"):
        model.embed(features(), EDGE_INDEX[:1])
    assert not model.decoder._forward_pre_hooks


def test_a_model_that_decodes_first_has_no_embeddings() -> None:
    with pytest.raises(ValueError, match="APGCN has no states to return"):
        APGCN(5, 8, 3, 2).embed(features(), EDGE_INDEX)
