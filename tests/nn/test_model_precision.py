from __future__ import annotations

import copy

import pytest
import torch

from tests.nn.model_examples import EDGE_INDEX, KINDS, build, edge_features, features


@pytest.mark.parametrize("level", ["node", "graph"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_float64_model_computes_in_float64(kind: str, level: str) -> None:
    model = build(kind, level=level, edge_dim=2)
    exact = copy.deepcopy(model).double()
    x, attr = features(), edge_features()
    out, exits = exact.predict(x.double(), EDGE_INDEX, attr.double())
    assert out.dtype == exits.time.dtype == exits.tau.dtype == torch.float64
    coarse, coarse_exits = model.predict(x, EDGE_INDEX, attr)
    assert coarse.dtype == torch.float32
    torch.testing.assert_close(coarse.double(), out, rtol=1e-4, atol=1e-5)
    assert torch.equal(coarse_exits.layer, exits.layer)
    assert not torch.equal(coarse.double(), out)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("level", ["node", "graph"])
@pytest.mark.parametrize("kind", KINDS)
def test_autocast_works_and_is_close(kind: str, level: str, training: bool) -> None:
    model = build(kind, level=level).train(training)
    torch.manual_seed(0)
    exact = model(features(), EDGE_INDEX)
    torch.manual_seed(0)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out, exits = model(features(), EDGE_INDEX, return_exits=True)
    assert exits.time.dtype == torch.float32
    assert out.isfinite().all()
    # bfloat16 has eight bits: a unit near its threshold may leave elsewhere, most do not.
    close = torch.isclose(out.float(), exact, rtol=0.1, atol=0.1).all(dim=1)
    assert close.double().mean() >= 0.5


def test_autocast_does_not_hide_a_float64_input() -> None:
    with torch.autocast("cpu", dtype=torch.bfloat16), pytest.raises(TypeError, match="x has dtype"):
        build("SASGNN")(features().double(), EDGE_INDEX)
