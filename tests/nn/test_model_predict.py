from __future__ import annotations

import math

import pytest
import torch

from tests.nn.model_examples import BOTH, EDGE_INDEX, KINDS, NUM_NODES, build, features


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_predict_is_evaluation_without_gradients_in_any_mode(kind: str, training: bool) -> None:
    model = build(kind, dropout=0.5)
    with torch.no_grad():
        expected, left = model.eval()(features(), EDGE_INDEX, return_exits=True)
    model.train(training)
    out, exits = model.predict(features(), EDGE_INDEX)
    assert torch.equal(out, expected)
    assert torch.equal(exits.layer, left.layer)
    assert model.training is training
    assert all(m.training is training for m in model.modules())
    assert not out.requires_grad
    assert not exits.cost.requires_grad


@pytest.mark.parametrize("level", ["node", "graph"])
@pytest.mark.parametrize("kind", KINDS)
def test_evaluation_with_gradients_agrees_with_predict(kind: str, level: str) -> None:
    model = build(kind, level=level).double().eval()
    x = features().double()
    out, exits = model(x, EDGE_INDEX, return_exits=True)
    fast, fast_exits = model.predict(x, EDGE_INDEX)
    assert out.requires_grad
    torch.testing.assert_close(fast, out)
    assert torch.equal(fast_exits.layer, exits.layer)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("kind", BOTH)
def test_predict_restores_the_mode_after_an_error(kind: str, training: bool) -> None:
    model = build(kind).train(training)
    with pytest.raises(ValueError, match="x holds NaN"):
        model.predict(torch.full((NUM_NODES, 5), math.nan), EDGE_INDEX)
    assert all(m.training is training for m in model.modules())
    assert torch.is_grad_enabled()


@pytest.mark.parametrize("max_layers", [1, 2, 6, 99])
@pytest.mark.parametrize("kind", KINDS)
def test_nobody_stays_longer_than_max_layers(kind: str, max_layers: int) -> None:
    model = build(kind).double()
    x = features().double()
    out, exits = model.predict(x, EDGE_INDEX, max_layers=max_layers)
    assert int(exits.layer.max()) <= min(max_layers, 6)
    assert exits.num_layers == 6
    if max_layers >= 6:
        assert torch.equal(out, model.predict(x, EDGE_INDEX)[0])


@pytest.mark.parametrize("kind", [k for k in KINDS if k != "SASGNN"])
def test_the_threshold_moves_everyone_from_the_first_layer_to_the_last(kind: str) -> None:
    model = build(kind)
    _, at_once = model.predict(features(), EDGE_INDEX, exit_threshold=0.0)
    _, never = model.predict(features(), EDGE_INDEX, exit_threshold=1.0)
    assert at_once.layer.tolist() == [1] * NUM_NODES
    assert never.layer.tolist() == [6] * NUM_NODES
