from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch_geometric.nn import GCNConv, GINEConv, GPSConv, ResGatedGraphConv

from eegnn.zoo.gps import GPS, LeanAttention
from tests.graphs import both_ways
from tests.zoo.examples import drawn, ready, states

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


def test_with_gcn_and_layer_norm_a_batch_goes_through_pygs_layer() -> None:
    model = ready(GPS(3, 4, 2, 2, conv="gcn", conv_norm="layer", heads=2))
    x, batch = states(5, 3), torch.tensor([0, 0, 0, 0, 1])
    h = model.encoder(x)
    for ours in model.layers:
        layer = GPSConv(4, GCNConv(4, 4), heads=2, norm="layer_norm").double().eval()
        weights = ours.gps.state_dict()
        layer.load_state_dict({k.replace("conv.conv.", "conv."): v for k, v in weights.items()})
        h = layer(h, EDGES, batch)
    assert torch.allclose(model(x, EDGES, batch=batch), model.decoder(h), atol=1e-12)


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
