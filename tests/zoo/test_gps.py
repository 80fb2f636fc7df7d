from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch_geometric.nn import GINEConv, GPSConv, ResGatedGraphConv

from eegnn.zoo.gps import GPS, LeanAttention
from tests.graphs import both_ways
from tests.nn.model_examples import count
from tests.zoo.examples import drawn, states
from tests.zoo.properties import (
    check_batches,
    check_depth,
    check_gradients,
    check_permutations,
    check_small_graphs,
    ready,
)

EDGES = both_ways([(0, 1), (1, 2), (2, 3), (1, 3)])


def pygs_layer(conv: str) -> GPSConv:
    mlp = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))
    local = GINEConv(mlp, edge_dim=2) if conv == "gine" else ResGatedGraphConv(4, 4, edge_dim=2)
    return GPSConv(4, local, heads=2).double().eval()


@pytest.mark.parametrize("conv", ["gatedgcn", "gine"])
def test_a_layer_is_pygs(conv: Any) -> None:
    model = ready(GPS(3, 4, 2, 1, conv=conv, heads=2, edge_dim=2))
    layer = pygs_layer(conv)
    ours = model.layers[0].gps.state_dict()
    layer.load_state_dict({k.replace("conv.conv.", "conv."): v for k, v in ours.items()})
    x, edge_attr = states(5, 3), states(8, 2)
    expected = model.decoder(layer(model.encoder(x), EDGES, edge_attr=edge_attr))
    assert torch.allclose(model(x, EDGES, edge_attr), expected, atol=1e-12)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"heads": 2, "edge_dim": 2},
        {"conv": "gine", "conv_dropout": 0.1, "attn_dropout": 0.1},
        {"conv": "gine", "edge_dim": 2, "level": "graph"},
    ],
)
def test_it_is_a_model_like_the_others(options: dict[str, Any]) -> None:
    model = GPS(3, 4, 2, 2, **options)
    check_gradients(model)
    model = ready(model)
    check_batches(model)
    if model.level == "node":
        check_permutations(model)
        check_depth(model)
        check_small_graphs(model)


def test_attention_is_pytorchs_without_its_shortcut(monkeypatch: pytest.MonkeyPatch) -> None:
    lean, plain = (
        drawn(kind(4, 2, batch_first=True)).eval()
        for kind in (LeanAttention, nn.MultiheadAttention)
    )
    x, padding = states(6).view(2, 3, 4), torch.tensor([[False] * 3, [False, True, True]])
    expected, _ = plain(x, x, x, key_padding_mask=padding, need_weights=False)
    monkeypatch.setattr(torch, "_native_multi_head_attention", None)
    with torch.no_grad():
        out, _ = lean(x, x, x, key_padding_mask=padding, need_weights=False)
        assert torch.allclose(out[~padding], expected[~padding], atol=1e-12)
        with pytest.raises(TypeError):
            plain(x, x, x, key_padding_mask=padding, need_weights=False)


def test_a_reset_draws_all_matrices_anew() -> None:
    model = GPS(3, 4, 2, 2)
    before = {name: weight.clone() for name, weight in model.named_parameters() if weight.dim() > 1}
    model.reset_parameters()
    after = dict(model.named_parameters())
    assert [name for name, weight in before.items() if torch.equal(weight, after[name])] == []


def test_its_number_of_parameters() -> None:
    attention = 4 * (8 * 8 + 8)
    mlp = (8 * 16 + 16) + (16 * 8 + 8)
    norms = 3 * 2 * 8
    gated = 3 * (8 * 8 + 8) + 8 * 8 + 8
    gine = 2 * (8 * 8 + 8)
    around = (7 * 8 + 8) + 8 * 2
    assert count(GPS(7, 8, 2, 3)) == around + 3 * (attention + mlp + norms + gated)
    assert count(GPS(7, 8, 2, 3, conv="gine", edge_dim=5)) == around + 3 * (
        attention + mlp + norms + gine + 5 * 8 + 8
    )


def test_edge_features_are_asked_for() -> None:
    with pytest.raises(ValueError, match="edge_attr is needed: the model has edge_dim=2"):
        GPS(3, 4, 2, 1, edge_dim=2).double()(states(5, 3), EDGES)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"conv": "gcn"}, "conv must be one of 'gatedgcn', 'gine', got 'gcn'"),
        ({"heads": 3}, "heads must divide the width 4, got 3"),
        ({"edge_dim": 0}, "edge_dim must be at least 1, got 0"),
        ({"conv_dropout": 2}, r"conv_dropout must be in \[0, 1\], got 2"),
        ({"attn_dropout": -1}, r"attn_dropout must be in \[0, 1\], got -1"),
    ],
)
def test_wrong_options_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        GPS(3, 4, 2, **options)
