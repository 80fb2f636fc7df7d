from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.utils import add_self_loops

from eegnn import load, save
from eegnn.graph import Adjacency
from eegnn.zoo.polynormer import GlobalAttention, LocalLayer, Polynormer
from tests.graphs import Matrix, Pairs, both_ways
from tests.zoo.examples import (
    GRAPHS,
    adjacency,
    array,
    batch_norm,
    drawn,
    gat_by_hand,
    gcn_by_hand,
    layer_norm,
    linear,
    ready,
    states,
)


def sigmoid(x: Matrix) -> Matrix:
    return 1 / (1 + np.exp(-x))


def local_by_hand(layer: Any, h: Matrix, n: int, pairs: Pairs) -> Matrix:
    if layer.norm_in is not None:
        h = layer_norm(layer.norm_in, h)
    gate = np.maximum(linear(layer.gate, h), 0)
    if hasattr(layer.conv, "att_src"):
        u = gat_by_hand(layer.conv, h, n, pairs)
    else:
        u = gcn_by_hand(layer.conv.conv, h, n, pairs)
    u = u + linear(layer.lin, h)
    if layer.norm_conv is not None:
        u = batch_norm(layer.norm_conv.module, u)
    u = np.maximum(u, 0)
    beta = array(layer.beta.value)
    beta = sigmoid(beta) if layer.beta.start is None else beta
    return (1 - beta) * layer_norm(layer.norm, gate * u) + beta * u


def global_by_hand(layer: Any, h: Matrix) -> Matrix:
    """With the whole [n, n] matrix of each head."""
    n, m = h.shape
    s = sigmoid(linear(layer.key, h)).reshape(n, layer.heads, -1)
    v = linear(layer.value, h).reshape(n, layer.heads, -1)
    out = np.zeros_like(v)
    for head in range(layer.heads):
        weight = s[:, head] @ s[:, head].T
        out[:, head] = weight @ v[:, head] / weight.sum(axis=1, keepdims=True)
    beta = array(layer.beta.value)
    beta = sigmoid(beta) if layer.beta.start is None else beta
    return layer_norm(layer.norm, out.reshape(n, m)) * (linear(layer.gate, h) + beta)


LOCAL: list[dict[str, Any]] = [
    {"heads": 2},
    {"beta": 0.7, "conv_norm": "layer"},
    {"local_attn": False, "conv_norm": "batch"},
]


@pytest.mark.parametrize(("n", "pairs"), GRAPHS)
@pytest.mark.parametrize("options", LOCAL)
def test_states_are_the_formula(n: int, pairs: Pairs, options: dict[str, Any]) -> None:
    model = ready(Polynormer(3, 4, 2, 3, **options))
    x, adj = states(n, 3), adjacency(n, pairs)
    h, total = array(model.encoder(x)), np.zeros((n, 4))
    for layer in model.local_layers:
        h = local_by_hand(layer, h, n, pairs)
        total += h
    z = layer_norm(model.global_norm, total)
    for layer in model.global_attention:
        z = np.maximum(linear(model.global_out, global_by_hand(layer, z)), 0)
    for on, expected in [(True, z), (False, total)]:
        model.global_on.fill_(on)
        decoded = array(model.decoder(torch.from_numpy(expected)))
        np.testing.assert_allclose(array(model(x, adj)), decoded, atol=1e-10)


@pytest.mark.parametrize("heads", [1, 2])
def test_global_attention_stays_in_a_graph(heads: int) -> None:
    layer, h = drawn(GlobalAttention(4, heads)), states(6)
    adj = Adjacency.from_edge_index(both_ways([]), 6, torch.tensor([0, 0, 0, 1, 3, 3]))
    expected = [global_by_hand(layer, array(h)[part]) for part in (slice(3), [3], slice(4, 6))]
    np.testing.assert_allclose(array(layer(h, adj)), np.concatenate(expected), atol=1e-12)


def pygs(model: Any, local_attn: bool) -> Any:
    """PyG's model with our weights; they are alike with one head and one global layer."""
    module = pytest.importorskip("torch_geometric.nn.models.polynormer")
    other = module.Polynormer(
        4, 4, 2, 2, 1, beta=0.9, qk_shared=True, post_bn=not local_attn, local_attn=local_attn
    )
    pairs: list[tuple[Any, Any]] = [
        (other.ln, model.global_norm),
        (other.global_attn[0].h_lins, model.global_attention[0].gate),
        (other.global_attn[0].k, model.global_attention[0].key),
        (other.global_attn[0].v, model.global_attention[0].value),
        (other.global_attn[0].lns, model.global_attention[0].norm),
        (other.global_attn[0].lin_out, model.global_out),
        (other.pred_global, model.decoder.mlp.lins[0]),
        (other.pred_local, model.decoder.mlp.lins[0]),
    ]
    for i, layer in enumerate(model.local_layers):
        conv = layer.conv if local_attn else layer.conv.conv
        pairs += [(other.h_lins[i], layer.gate), (other.local_convs[i], conv)]
        pairs += [(other.lins[i], layer.lin), (other.lns[i], layer.norm)]
        if not local_attn:
            pairs.append((other.post_bns[i], layer.norm_conv.module))
    for theirs, ours in pairs:
        state = ours.state_dict()
        if "bias" in dict(theirs.named_parameters()):  # PyG's decoders have one
            state.setdefault("bias", torch.zeros(2))
        else:  # and its keys and values have none
            state = {name: value for name, value in state.items() if name != "bias"}
        theirs.load_state_dict(state)
    return other.double().eval()


@pytest.mark.parametrize("local_attn", [True, False])
def test_with_one_head_and_one_global_layer_it_is_pygs_model(local_attn: bool) -> None:
    norm: Any = None if local_attn else "batch"
    model = ready(
        Polynormer(3, 4, 2, 2, global_layers=1, local_attn=local_attn, beta=0.9, conv_norm=norm)
    )
    with torch.no_grad():
        for layer in model.global_attention:
            layer.key.bias.zero_()
            layer.value.bias.zero_()
        for beta in (layer.beta for layer in (*model.local_layers, *model.global_attention)):
            beta.reset_parameters()
    other = pygs(model, local_attn)
    n, pairs = GRAPHS[0]
    x, edges = states(n, 3), both_ways(pairs)
    looped = add_self_loops(edges, num_nodes=n)[0] if local_attn else edges
    for on in (False, True):
        model.global_on.fill_(on)
        other._global = on
        expected = other(model.encoder(x), looped, torch.zeros(n, dtype=torch.int64))
        found = model(x, adjacency(n, pairs)).log_softmax(dim=-1)
        assert torch.allclose(found, expected, atol=1e-5)  # PyG adds 1e-6 to its denominators


def test_global_layers_wait_for_the_local_epochs(tmp_path: Path) -> None:
    model = Polynormer(3, 4, 2, 2, local_epochs=2)
    on = [bool(model.global_on)]
    for epoch in (1, 2, 3, 4):
        model.before_epoch(epoch)
        on.append(bool(model.global_on))
        save(model, tmp_path / "model.safetensors")
        assert load(tmp_path / "model.safetensors").get_buffer("global_on") == model.global_on
    assert on == [False, False, False, True, True]
    model.reset_parameters()
    assert not model.global_on


def test_while_they_wait_they_learn_nothing() -> None:
    model = Polynormer(3, 4, 2, 2, local_epochs=1).double()
    model(states(4, 3), both_ways([(0, 1), (1, 2)])).sum().backward()
    idle = [name for name, weight in model.named_parameters() if weight.grad is None]
    assert idle == [name for name, _ in model.named_parameters() if name.startswith("global")]


def test_without_local_epochs_they_are_on_from_the_start() -> None:
    assert Polynormer(3, 4, 2).global_on


@pytest.mark.parametrize(("start", "value"), [(None, 0.5), (0.1, 0.1)])
def test_beta_starts_as_asked(start: float | None, value: float) -> None:
    layer = LocalLayer(4, 1, True, start, None, 0.0)
    assert torch.allclose(layer.beta(), torch.full((4,), value))
