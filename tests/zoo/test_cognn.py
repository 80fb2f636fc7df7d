from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from torch import Tensor
from torch.nn.functional import gelu, one_hot, relu, softmax, softplus
from torch_geometric.nn import SimpleConv

from eegnn.nn.dropout import Dropout
from eegnn.nn.gumbel import logistic_noise
from eegnn.zoo.cognn import ActionNets, CoGNN
from tests.graphs import TRIANGLE_AND_TAIL, Pairs, both_ways, dense, graphs
from tests.zoo.examples import adjacency, array, states

few = settings(deadline=None, max_examples=6)
HIDDEN = 4
LAYERS = 3
N = 7
PAIRS: Pairs = [*TRIANGLE_AND_TAIL, (4, 5)]

VARIANTS: dict[str, dict[str, Any]] = {
    "mean": {"tau0": 0.7},
    "sum, deep actions": {"environment": "sum", "action": "sum", "action_layers": 3},
    "skip, norm, gelu": {
        "skip": True, "layer_norm": True, "activation": "gelu", "action_layers": 2,
        "action_channels": 2,
    },
    "fixed temperature, deep decoder": {"temperature": 0.3, "decoder_layers": 3, "action": "sum"},
}  # fmt: skip
every_variant = pytest.mark.parametrize("variant", VARIANTS)


def model(num_layers: int = LAYERS, **options: Any) -> CoGNN:
    torch.manual_seed(2)
    options = {"action_channels": 3, **options}
    built = CoGNN(3, HIDDEN, 2, num_layers, **options).double().eval()
    with torch.no_grad():
        for name, weight in built.named_parameters():
            if name.startswith("norm"):
                weight.add_(torch.randn_like(weight))
        for net in (built.actions.listen, built.actions.broadcast):
            net[-1].get_parameter("bias").zero_()  # so that some keep and some drop
    return built


class Noise:
    """What a forward pass draws: differences of two Gumbel variables, and masks of dropout.

    In order: encoder; in each layer inside the action networks, actions, states; decoder.
    """

    def __init__(self, cognn: CoGNN, n: int, sample: bool = True) -> None:
        drop = Dropout(cognn.dropout).train(cognn.training)

        def mask(width: int) -> Tensor:
            return drop(torch.ones(n, width, dtype=torch.float64))

        self.encoder = mask(HIDDEN)
        self.actions, self.inside, self.states = [], [], []
        for _ in range(LAYERS):
            width = cognn.action_channels
            hidden_layers = range(cognn.action_layers - 1)
            self.inside.append([mask(2 * width).chunk(2, dim=1) for _ in hidden_layers])
            like = torch.zeros(n, 2, dtype=torch.float64)
            self.actions.append(logistic_noise(like) if sample else like)
            self.states.append(mask(HIDDEN))
        self.decoder = [mask(HIDDEN) for _ in range(cognn.decoder_layers - 1)]
        self.kept: list[float] = []  # filled by `by_definition`: weights of the edges


def by_definition(cognn: CoGNN, x: Tensor, n: int, pairs: Pairs, noise: Noise) -> Tensor:
    """With dense matrices, and a straight-through softmax over both actions."""
    a = {how: torch.from_numpy(dense(n, pairs, how)) for how in ("mean", "sum")}
    activation = relu if cognn.activation == "relu" else gelu

    def norm(h: Tensor) -> Tensor:
        if cognn.norm is None:
            return h
        h = h - h.mean(dim=1, keepdim=True)
        scaled = h / (h.square().mean(dim=1, keepdim=True) + 1e-5).sqrt()
        return scaled * cognn.norm.weight + cognn.norm.bias

    def inverse_temperature(h: Tensor) -> Tensor:
        if cognn.temperature != "learned":
            return torch.full_like(h[:, :1], 1 / cognn.temperature)
        assert cognn.learned_temperature is not None
        weight = cognn.learned_temperature.head.get_parameter("lins.0.weight")
        return softplus(h @ weight.T) + cognn.tau0

    def keep(which: int, h: Tensor, layer: int) -> Tensor:
        inverse = inverse_temperature(h)
        net = (cognn.actions.listen, cognn.actions.broadcast)[which]
        for k, lin in enumerate(net):
            h = lin(torch.cat([h, a[cognn.action] @ h], dim=1))
            if k < len(net) - 1:
                h = relu(h * noise.inside[layer][k][which])
        difference = noise.actions[layer][:, which]
        gumbel = torch.stack([difference, torch.zeros_like(difference)], dim=1)
        soft = softmax((h + gumbel) * inverse, dim=1)
        return (one_hot(soft.argmax(dim=1), 2) - soft.detach() + soft)[:, 0]

    h = activation((x @ cognn.encoder.weight.T + cognn.encoder.bias) * noise.encoder)
    for layer, lin in enumerate(cognn.lins):
        h = norm(h)
        edge_weight = torch.outer(keep(0, h, layer), keep(1, h, layer))
        noise.kept += edge_weight.detach()[a["sum"] > 0].tolist()
        heard = (a[cognn.environment] * edge_weight) @ h
        z = activation(lin(torch.cat([h, heard], dim=1)) * noise.states[layer])
        h = h + z if cognn.skip else z
    h = norm(h)
    *others, last = cognn.decoder.mlp.lins
    for lin, mask in zip(others, noise.decoder, strict=True):
        h = activation(lin(h) * mask)
    return last(h)


@every_variant
@given(graph=graphs(max_nodes=6))
@few
def test_evaluation_is_the_definition_with_the_same_noise(
    variant: str, graph: tuple[int, Pairs]
) -> None:
    n, pairs = graph
    cognn, x = model(dropout=0.4, **VARIANTS[variant]), states(n, 3)
    torch.manual_seed(5)
    out = cognn(x, adjacency(n, pairs))
    torch.manual_seed(5)
    expected = by_definition(cognn, x, n, pairs, Noise(cognn, n))
    assert torch.allclose(out, expected, atol=1e-10)


@every_variant
@pytest.mark.parametrize("dropout", [0.0, 0.4])
def test_training_and_its_gradients_are_the_definition_with_the_same_noise(
    dropout: float, variant: str
) -> None:
    cognn, x = model(dropout=dropout, **VARIANTS[variant]).train(), states(N, 3)
    torch.manual_seed(5)
    out = cognn(x, adjacency(N, PAIRS))
    torch.manual_seed(5)
    noise = Noise(cognn, N)
    expected = by_definition(cognn, x, N, PAIRS, noise)
    assert torch.allclose(out, expected, atol=1e-12)
    assert {round(weight) for weight in noise.kept} == {0, 1}  # some edges carry a message
    names, weights = zip(*cognn.named_parameters(), strict=True)
    target = states(N, 2, seed=3)
    found = torch.autograd.grad((out * target).sum(), weights)
    wanted = torch.autograd.grad((expected * target).sum(), weights)
    for name, ours, theirs in zip(names, found, wanted, strict=True):
        assert torch.allclose(ours, theirs, rtol=1e-10, atol=1e-12), name


@pytest.mark.parametrize("widths", [[4, 2], [1, 2], [4, 1, 2], [4, 5, 2], [4, 3, 3, 2]])
@pytest.mark.parametrize("aggregation", ["mean", "sum"])
def test_action_networks_give_the_difference_of_their_logits(
    aggregation: Any, widths: list[int]
) -> None:
    torch.manual_seed(0)
    nets, a = ActionNets(widths, aggregation, 0.0).double(), dense(N, PAIRS, aggregation)
    expected = []
    for net in (nets.listen, nets.broadcast):
        h = array(states(N, widths[0]))
        for k, lin in enumerate(net):
            weight, bias = array(lin.get_parameter("weight")), array(lin.get_parameter("bias"))
            h = np.concatenate([h, a @ h], axis=1) @ weight.T + bias
            h = np.maximum(h, 0) if k < len(net) - 1 else h
        expected.append(h[:, 0] - h[:, 1])
    found = nets(states(N, widths[0]), adjacency(N, PAIRS))
    np.testing.assert_allclose(array(found), np.stack(expected, axis=1), atol=1e-10)


@pytest.mark.parametrize("aggregation", ["mean", "sum"])
def test_diagonal_scalings_are_edge_weights(aggregation: Any) -> None:
    """PyG's weighted aggregation, whose mean counts edges of weight 0 too, as the authors' does."""
    adj, edges, x = adjacency(N, PAIRS), both_ways(PAIRS), states(N, 3)
    cognn = model(environment=aggregation)
    torch.manual_seed(0)
    listens, broadcasts = cognn._act(states(N, HIDDEN), adj, noisy=True)
    assert {*listens.unique().tolist()} == {*broadcasts.unique().tolist()} == {0.0, 1.0}
    weight = (listens[edges[1]] * broadcasts[edges[0]]).view(-1)
    expected = SimpleConv(aggr=aggregation)(x, edges, edge_weight=weight)
    found = listens * adj.propagate(broadcasts * x, aggregation)
    assert torch.allclose(found, expected, atol=1e-12)


def test_the_temperature_starts_like_any_linear_layer() -> None:
    weight = CoGNN(1, 400, 1, 1).get_parameter("learned_temperature.head.lins.0.weight")
    assert weight.abs().max().item() == pytest.approx(400**-0.5, rel=0.05)


def test_actions_are_drawn_with_their_probabilities() -> None:
    cognn, state, n = model(), states(1, HIDDEN), 20_000
    torch.manual_seed(0)
    score = cognn.actions(state, adjacency(1, [])).sigmoid()[0]
    actions = cognn._act(state.expand(n, -1), adjacency(n, []), noisy=True)
    assert bool(((score - 0.5).abs() < 0.45).all())
    assert torch.allclose(torch.cat(actions, dim=1).mean(dim=0), score, atol=5 * 0.5 / n**0.5)


def test_evaluation_is_noisy_unless_it_is_asked_not_to_be() -> None:
    cognn, x, adj = model(), states(9, 3), adjacency(9, TRIANGLE_AND_TAIL)
    torch.manual_seed(0)
    first = cognn(x, adj)
    assert not torch.equal(cognn(x, adj), first)
    torch.manual_seed(0)
    assert torch.equal(cognn(x, adj), first)
    torch.manual_seed(0)
    assert torch.equal(cognn.predict(x, adj, sample=True)[0], first)
    likely, _ = cognn.predict(x, adj, sample=False)
    assert torch.equal(cognn.predict(x, adj, sample=False)[0], likely)
    expected = by_definition(cognn, x, 9, TRIANGLE_AND_TAIL, Noise(cognn, 9, sample=False))
    assert torch.allclose(likely, expected, atol=1e-10)
