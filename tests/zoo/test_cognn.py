from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from torch import Tensor
from torch.nn.functional import gelu, layer_norm, linear, one_hot, softmax, softplus
from torch_geometric.data import Batch, Data
from torch_geometric.nn import SimpleConv

from eegnn.graph import Adjacency
from eegnn.nn.dropout import Dropout
from eegnn.nn.gumbel import logistic_noise
from eegnn.nn.heads import Temperature
from eegnn.zoo.cognn import ActionNets, CoGNN
from tests.graphs import TRIANGLE_AND_TAIL, Matrix, Pairs, both_ways, dense, features, graphs

few = settings(deadline=None, max_examples=6)
erf = np.vectorize(math.erf, otypes=[float])
HIDDEN = 4
LAYERS = 3

VARIANTS: dict[str, dict[str, Any]] = {
    "mean": {},
    "sum, deep actions": {"environment": "sum", "action": "sum", "action_layers": 3},
    "skip, norm, gelu": {
        "skip": True, "layer_norm": True, "activation": "gelu", "action_layers": 2,
        "action_channels": 2,
    },
    "fixed temperature, deep decoder": {"temperature": 0.3, "decoder_layers": 3, "action": "sum"},
}  # fmt: skip


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


def adjacency(n: int, pairs: Pairs) -> Adjacency:
    return Adjacency.from_edge_index(both_ways(pairs), n)


def array(tensor: Tensor) -> Matrix:
    return tensor.detach().numpy()


class Noise:
    """What is drawn: the difference of two Gumbel variables for each action, and dropout masks."""

    def __init__(self, n: int) -> None:
        self.actions: list[Matrix] = [np.zeros((n, 2))] * LAYERS
        self.states: list[Matrix] = [np.ones((n, HIDDEN))] * (LAYERS + 1)
        self.inside: list[list[Matrix]] = [[np.ones((n, 2, 1))] * 9] * LAYERS
        self.decoder: list[Matrix] = [np.ones((n, HIDDEN))] * 9
        self.kept: list[float] = []  # filled by `by_hand`: share of the edges that carry a message


def by_hand(cognn: CoGNN, x: Matrix, n: int, pairs: Pairs, noise: Noise) -> Matrix:
    """Node by node and edge by edge, with one-hot actions."""
    config, a = cognn.config, dense(n, pairs)

    def activation(z: Matrix) -> Matrix:
        if config["activation"] == "relu":
            return np.maximum(z, 0)
        return z * 0.5 * (1 + erf(z / np.sqrt(2)))

    def norm(h: Matrix) -> Matrix:
        if not config["layer_norm"]:
            return h
        assert cognn.norm is not None
        centred = h - h.mean(axis=1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + cognn.norm.eps)
        return scaled * array(cognn.norm.weight) + array(cognn.norm.bias)

    def gather(h: Matrix, weight: Matrix, how: str) -> Matrix:
        out = np.zeros_like(h)
        for i in range(n):
            neighbours = [j for j in range(n) if a[i, j]]
            for j in neighbours:
                out[i] += weight[i, j] * h[j]
            if how == "mean" and neighbours:
                out[i] /= len(neighbours)  # all of them, also those with weight 0
        return out

    def logits(net: torch.nn.ModuleList, h: Matrix, drop: list[Matrix], which: int) -> Matrix:
        for k, lin in enumerate(net):
            around = gather(h, np.ones((n, n)), config["action"])
            weight, bias = array(lin.get_parameter("weight")), array(lin.get_parameter("bias"))
            h = np.concatenate([h, around], axis=1) @ weight.T + bias
            if k < len(net) - 1:
                h = np.maximum(h * drop[k][:, which], 0)
        return h

    def one_hot_actions(logit: Matrix, difference: Matrix) -> Matrix:
        noisy = logit + np.stack([difference, np.zeros(n)], axis=1)
        hot = np.zeros((n, 2))
        hot[np.arange(n), noisy.argmax(axis=1)] = 1
        return hot

    weight, bias = array(cognn.encoder.weight), array(cognn.encoder.bias)
    h = activation((x @ weight.T + bias) * noise.states[0])
    for layer, lin in enumerate(cognn.lins):
        h = norm(h)
        inside, drawn = noise.inside[layer], noise.actions[layer]
        into = one_hot_actions(logits(cognn.actions.listen, h, inside, 0), drawn[:, 0])
        out = one_hot_actions(logits(cognn.actions.broadcast, h, inside, 1), drawn[:, 1])
        edge_weight = np.zeros((n, n))
        for i in range(n):
            for j in range(n):
                edge_weight[i, j] = into[i, 0] * out[j, 0]
        noise.kept.append((edge_weight * a).sum() / max(a.sum(), 1))
        heard = gather(h, edge_weight, config["environment"])
        weight, bias = array(lin.get_parameter("weight")), array(lin.get_parameter("bias"))
        z = np.concatenate([h, heard], axis=1) @ weight.T + bias
        z = activation(z * noise.states[layer + 1])
        h = h + z if config["skip"] else z
    h = norm(h)
    for k, lin in enumerate(cognn.decoder.mlp.lins):
        h = h @ array(lin.get_parameter("weight")).T + array(lin.get_parameter("bias"))
        if k < len(cognn.decoder.mlp.lins) - 1:
            h = activation(h * noise.decoder[k])
    return h


def gumbel_differences(n: int) -> list[Matrix]:
    like = torch.empty(n, 2, dtype=torch.float64)
    return [array(logistic_noise(like)) for _ in range(LAYERS)]


@pytest.mark.parametrize("variant", VARIANTS)
@given(graph=graphs(max_nodes=6))
@few
def test_evaluation_is_the_formula_with_the_same_noise(
    variant: str, graph: tuple[int, Pairs]
) -> None:
    n, pairs = graph
    cognn, x, noise = model(**VARIANTS[variant]), features(n), Noise(n)
    torch.manual_seed(5)
    out = cognn(torch.from_numpy(x), adjacency(n, pairs))
    torch.manual_seed(5)
    noise.actions = gumbel_differences(n)
    np.testing.assert_allclose(array(out), by_hand(cognn, x, n, pairs, noise), atol=1e-10)


@pytest.mark.parametrize("variant", VARIANTS)
def test_training_is_the_formula_with_the_same_noise(variant: str) -> None:
    """Draws in order: encoder; each layer inside the action networks, actions, states; decoder."""
    n, pairs = 7, [*TRIANGLE_AND_TAIL, (4, 5)]
    cognn, x = model(dropout=0.4, **VARIANTS[variant]).train(), features(n)
    torch.manual_seed(5)
    out = cognn(torch.from_numpy(x), adjacency(n, pairs))

    torch.manual_seed(5)
    noise, drop = Noise(n), Dropout(0.4)

    def draw(*shape: int) -> Matrix:
        return array(drop(torch.ones(*shape, dtype=torch.float64)))

    noise.states, noise.actions, noise.inside = [draw(n, HIDDEN)], [], []
    like = torch.empty(n, 2, dtype=torch.float64)
    width, depth = cognn.config["action_channels"], cognn.config["action_layers"]
    for _ in range(LAYERS):
        noise.inside.append([draw(n, 2 * width).reshape(n, 2, width) for _ in range(depth - 1)])
        noise.actions.append(array(logistic_noise(like)))
        noise.states.append(draw(n, HIDDEN))
    noise.decoder = [draw(n, HIDDEN) for _ in range(cognn.config["decoder_layers"] - 1)]
    np.testing.assert_allclose(array(out), by_hand(cognn, x, n, pairs, noise), atol=1e-10)
    assert 0 < sum(noise.kept) < LAYERS  # not a test of nothing


@pytest.mark.parametrize("widths", [[4, 2], [1, 2], [4, 1, 2], [4, 5, 2], [4, 3, 3, 2]])
@pytest.mark.parametrize("aggregation", ["mean", "sum"])
def test_action_networks_give_the_difference_of_their_logits(
    aggregation: Any, widths: list[int]
) -> None:
    n, pairs = 7, [*TRIANGLE_AND_TAIL, (4, 5)]
    torch.manual_seed(0)
    nets, a = ActionNets(widths, aggregation, 0.0).double(), dense(n, pairs, aggregation)
    expected = []
    for net in (nets.listen, nets.broadcast):
        h = features(n, widths[0])
        for k, lin in enumerate(net):
            weight, bias = array(lin.get_parameter("weight")), array(lin.get_parameter("bias"))
            h = np.concatenate([h, a @ h], axis=1) @ weight.T + bias
            h = np.maximum(h, 0) if k < len(net) - 1 else h
        expected.append(h[:, 0] - h[:, 1])
    found = nets(torch.from_numpy(features(n, widths[0])), adjacency(n, pairs))
    np.testing.assert_allclose(array(found), np.stack(expected, axis=1), atol=1e-10)


def straight_through(cognn: CoGNN, x: Tensor, a: Tensor, noise: list[Matrix]) -> Tensor:
    """The same model with dense matrices and a softmax over both actions, for its gradients."""
    mean = a / a.sum(dim=1, keepdim=True).clamp(min=1)

    def logits(net: torch.nn.ModuleList, h: Tensor) -> Tensor:
        for k, lin in enumerate(net):
            h = lin(torch.cat([h, mean @ h], dim=1))
            h = h.relu() if k < len(net) - 1 else h
        return h

    def keep(logit: Tensor, difference: Matrix, inverse: Tensor) -> Tensor:
        gumbel = torch.stack([torch.from_numpy(difference), torch.zeros(len(x))], dim=1)
        soft = softmax((logit + gumbel) * inverse, dim=1)
        hard = one_hot(soft.argmax(dim=1), 2)
        return (hard - soft.detach() + soft)[:, 0]

    def inverse_temperature(h: Tensor) -> Tensor:
        if not isinstance(cognn.learned_temperature, Temperature):
            return torch.ones_like(h[:, :1]) / cognn.config["temperature"]
        weight = cognn.learned_temperature.head.get_parameter("lins.0.weight")
        return softplus(linear(h, weight)) + cognn.config["tau0"]

    assert cognn.norm is not None
    h = gelu(linear(x, cognn.encoder.weight, cognn.encoder.bias))
    for layer, lin in enumerate(cognn.lins):
        h = layer_norm(h, (HIDDEN,), cognn.norm.weight, cognn.norm.bias)
        inverse = inverse_temperature(h)
        into = keep(logits(cognn.actions.listen, h), noise[layer][:, 0], inverse)
        out = keep(logits(cognn.actions.broadcast, h), noise[layer][:, 1], inverse)
        heard = (mean * torch.outer(into, out)) @ h
        h = h + gelu(lin(torch.cat([h, heard], dim=1)))
    h = layer_norm(h, (HIDDEN,), cognn.norm.weight, cognn.norm.bias)
    return cognn.decoder.mlp(h)


@pytest.mark.parametrize("temperature", [{"tau0": 0.7}, {"temperature": 0.3}])
def test_gradients_are_those_of_the_straight_through_softmax(temperature: dict[str, Any]) -> None:
    n, pairs = 7, [*TRIANGLE_AND_TAIL, (4, 5)]
    options: dict[str, Any] = {"skip": True, "layer_norm": True, "activation": "gelu"}
    cognn = model(action_layers=2, action_channels=8, **options, **temperature).train()
    x, a = torch.from_numpy(features(n)), torch.from_numpy(dense(n, pairs))
    torch.manual_seed(5)
    out = cognn(x, adjacency(n, pairs))
    torch.manual_seed(5)
    expected = straight_through(cognn, x, a, gumbel_differences(n))
    assert torch.allclose(out, expected, atol=1e-12)
    names, weights = zip(*cognn.named_parameters(), strict=True)
    target = torch.from_numpy(features(n, 2, seed=3))
    found = torch.autograd.grad((out * target).sum(), weights)
    wanted = torch.autograd.grad((expected * target).sum(), weights)
    for name, ours, theirs in zip(names, found, wanted, strict=True):
        assert torch.allclose(ours, theirs, rtol=1e-10, atol=1e-12), name
        assert ours.abs().sum() > 0, name


@pytest.mark.parametrize("aggregation", ["mean", "sum"])
def test_diagonal_scalings_are_edge_weights(aggregation: Any) -> None:
    """PyG's weighted aggregation, whose mean counts edges of weight 0 too, as the authors' does."""
    n, edges = 7, both_ways([*TRIANGLE_AND_TAIL, (4, 5)])
    adj, x = Adjacency.from_edge_index(edges, n), torch.from_numpy(features(n))
    cognn = model(environment=aggregation)
    torch.manual_seed(0)
    listens, broadcasts = cognn._act(torch.from_numpy(features(n, HIDDEN)), adj, noisy=True)
    assert {*listens.unique().tolist()} == {*broadcasts.unique().tolist()} == {0.0, 1.0}
    weight = (listens[edges[1]] * broadcasts[edges[0]]).view(-1)
    expected = SimpleConv(aggr=aggregation)(x, edges, edge_weight=weight)
    found = listens * adj.propagate(broadcasts * x, aggregation)
    assert torch.allclose(found, expected, atol=1e-12)


def test_the_temperature_is_learned_from_the_state() -> None:
    cognn, h = model(tau0=0.25), torch.from_numpy(features(5, HIDDEN))
    assert isinstance(cognn.learned_temperature, Temperature)
    weight = array(cognn.learned_temperature.head.get_parameter("lins.0.weight"))
    expected = np.log1p(np.exp(array(h) @ weight.T)) + 0.25  # 1/ν
    found = cognn.learned_temperature(h, adjacency(5, []))
    np.testing.assert_allclose(array(found), expected[:, 0], atol=1e-12)


def test_the_temperature_starts_like_any_linear_layer() -> None:
    weight = dict(CoGNN(1, 400, 1, 1).named_parameters())["learned_temperature.head.lins.0.weight"]
    assert weight.abs().max().item() == pytest.approx(400**-0.5, rel=0.05)


def test_actions_are_drawn_with_their_probabilities() -> None:
    cognn, n = model(), 20_000
    state = torch.from_numpy(features(1, HIDDEN))
    adj = adjacency(n, [])
    torch.manual_seed(0)
    score = cognn.actions(state, adjacency(1, [])).sigmoid()[0]
    drawn = torch.cat(cognn._act(state.expand(n, -1), adj, noisy=True), dim=1).mean(dim=0)
    assert bool(((score - 0.5).abs() < 0.45).all())
    assert torch.allclose(drawn, score, atol=5 * 0.5 / n**0.5)


def test_evaluation_is_noisy_unless_it_is_asked_not_to_be() -> None:
    cognn, x, edges = model(), torch.from_numpy(features(9)), both_ways(TRIANGLE_AND_TAIL)
    adj = Adjacency.from_edge_index(edges, 9)
    torch.manual_seed(0)
    first = cognn(x, adj)
    assert not torch.equal(cognn(x, adj), first)
    torch.manual_seed(0)
    assert torch.equal(cognn(x, adj), first)
    torch.manual_seed(0)
    assert torch.equal(cognn.predict(x, adj, sample=True)[0], first)
    likely, _ = cognn.predict(x, adj, sample=False)
    assert torch.equal(cognn.predict(x, adj, sample=False)[0], likely)
    expected = by_hand(cognn, features(9), 9, TRIANGLE_AND_TAIL, Noise(9))
    np.testing.assert_allclose(array(likely), expected, atol=1e-10)


@pytest.mark.parametrize(
    ("in_channels", "out_channels", "ten", "twenty"),
    [
        (301, 2, 34982, 55782),
        (300, 18, 35478, 56278),
        (7, 2, 25574, 46374),
        (10, 2, 25670, 46470),
        (300, 5, 35049, 55849),
    ],
    ids=["Questions", "Roman-empire", "Minesweeper", "Tolokers", "Amazon-ratings"],
)
def test_it_has_the_papers_number_of_parameters(
    in_channels: int, out_channels: int, ten: int, twenty: int
) -> None:
    def count(num_layers: int) -> int:
        cognn = CoGNN(
            in_channels, 32, out_channels, num_layers, action_layers=2, action_channels=32
        )
        return sum(weight.numel() for weight in cognn.parameters())

    assert (count(10), count(20)) == (ten, twenty)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("level", ["node", "graph"])
def test_every_parameter_gets_a_gradient(level: str, variant: str) -> None:
    cognn = model(level=level, dropout=0.1, **VARIANTS[variant]).train()
    cognn(torch.from_numpy(features(9)), adjacency(9, TRIANGLE_AND_TAIL)).square().sum().backward()
    assert [name for name, weight in cognn.named_parameters() if weight.grad is None] == []


@pytest.mark.parametrize("level", ["node", "graph"])
def test_a_batch_equals_its_graphs_one_by_one(level: str) -> None:
    cognn = model(level=level, layer_norm=True, skip=True)
    several = [
        Data(x=torch.from_numpy(features(n, seed=n)), edge_index=both_ways(pairs))
        for n, pairs in [(4, TRIANGLE_AND_TAIL), (1, []), (3, [(0, 2)])]
    ]
    batch = Batch.from_data_list(several)
    together, _ = cognn.predict(batch.x, batch.edge_index, batch=batch.batch, sample=False)
    alone = [
        cognn.predict(
            graph.x,
            graph.edge_index,
            batch=torch.zeros(len(graph.x), dtype=torch.int64),
            sample=False,
        )[0]
        for graph in several
    ]
    assert torch.allclose(together, torch.cat(alone), atol=1e-12)


def test_nodes_have_no_order() -> None:
    cognn, x, order = model(), torch.from_numpy(features(4)), torch.tensor([2, 0, 3, 1])
    renamed = order.argsort()[both_ways(TRIANGLE_AND_TAIL)]
    out, _ = cognn.predict(x, both_ways(TRIANGLE_AND_TAIL), sample=False)
    assert torch.allclose(cognn.predict(x[order], renamed, sample=False)[0], out[order])


@pytest.mark.parametrize(("limit", "layers"), [(1, 1), (3, 3), (9, 3)])
def test_max_layers_gives_a_shallower_model(limit: int, layers: int) -> None:
    deep, shallow = model(), model(num_layers=layers)
    shallow.load_state_dict(deep.state_dict(), strict=False)
    x, edges = torch.from_numpy(features(4)), both_ways(TRIANGLE_AND_TAIL)
    out, exits = deep.predict(x, edges, max_layers=limit, sample=False)
    assert exits.layer.tolist() == [layers] * 4
    assert torch.equal(out, shallow.predict(x, edges, sample=False)[0])


@pytest.mark.parametrize("level", ["node", "graph"])
def test_graphs_without_nodes_edges_or_features_work(level: str) -> None:
    cognn = CoGNN(0, 4, 2, 3, level=level, layer_norm=True)  # type: ignore[arg-type]
    for n in (0, 1, 3):
        out = cognn(None, Adjacency.from_edge_index(both_ways([]), n))
        assert out.isfinite().all()
        assert len(out) == (n if level == "node" else 1)


def test_its_config_builds_it_again() -> None:
    cognn = model(temperature=0.01, skip=True, dropout=0.2)
    assert CoGNN(**cognn.config).config == cognn.config
    assert CoGNN(3, 4, 2).config == {
        **CoGNN.defaults(), "in_channels": 3, "hidden_channels": 4, "out_channels": 2
    }  # fmt: skip


def test_reset_draws_all_weights_anew() -> None:
    cognn = model(layer_norm=True, action_layers=2)
    before = {name: weight.clone() for name, weight in cognn.named_parameters()}
    cognn.reset_parameters()
    same = [name for name, weight in cognn.named_parameters() if torch.equal(weight, before[name])]
    assert same == []
    assert model().norm is None


def test_autocast_works() -> None:
    cognn = CoGNN(3, 4, 2, skip=True).train()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = cognn(torch.ones(4, 3), both_ways(TRIANGLE_AND_TAIL))
    assert out.isfinite().all()


def test_its_repr_is_one_line() -> None:
    assert repr(model()) == "CoGNN(3, 4, 2, num_layers=3, level='node')"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"environment": "max"}, "environment must be one of 'mean', 'sum', got 'max'"),
        ({"action": "gcn"}, "action must be one of 'mean', 'sum', got 'gcn'"),
        ({"action_layers": 0}, "action_layers must be at least 1, got 0"),
        ({"action_channels": 0}, "action_channels must be at least 1, got 0"),
        ({"temperature": 0}, 'temperature must be above 0 or "learned", got 0'),
        ({"temperature": -1.0}, "temperature must be at least 0, got -1.0"),
        ({"tau0": -1}, "tau0 must be at least 0, got -1"),
        ({"activation": "tanh"}, "activation must be one of 'relu', 'gelu', got 'tanh'"),
    ],
)
def test_bad_arguments_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CoGNN(3, 4, 2, **options)


def test_it_has_no_exits_to_tune() -> None:
    with pytest.raises(ValueError, match="exit_threshold and sample need a model with exits"):
        model().predict(
            torch.from_numpy(features(4)), both_ways(TRIANGLE_AND_TAIL), exit_threshold=0.5
        )
