from __future__ import annotations

import copy
import inspect
import math
import pickle
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional as F

from eegnn import EEGNN, SASGNN, Adjacency
from eegnn.nn.model import GraphModel

NO_EDGES = torch.zeros(2, 0, dtype=torch.int64)
# A triangle with a tail, a pair, and an isolated node: three components.
EDGE_INDEX = torch.tensor([[0, 1, 1, 2, 2, 0, 2, 3, 4, 5], [1, 0, 2, 1, 0, 2, 3, 2, 5, 4]])
NUM_NODES = 7

#: Heads with large weights, so that units of a fresh model leave at different layers.
LIVELY: dict[str, Any] = {"continue_bias": 2.0, "head_scale": 8.0}

quick = settings(deadline=None, max_examples=30)


def features(n: int = NUM_NODES, channels: int = 5, seed: int = 0) -> Tensor:
    return torch.randn(n, channels, generator=torch.Generator().manual_seed(seed))


def edge_features(count: int = EDGE_INDEX.size(1), seed: int = 1) -> Tensor:
    return torch.randn(count, 2, generator=torch.Generator().manual_seed(seed))


def build(kind: str, seed: int = 2, **options: Any) -> GraphModel:
    """`EEGNN`, or `EEGNN sampled freeze` for its options in words, or `SASGNN`."""
    torch.manual_seed(seed)
    name, *words = kind.split()
    if name == "SASGNN":
        return SASGNN(5, 8, 3, 6, **options)
    named: dict[str, Any] = dict(LIVELY)
    for word in words:
        named["objective" if word in ("sampled", "expected") else "after_exit"] = word
    return EEGNN(5, 8, 3, 6, **{**named, **options})


KINDS = [
    "SASGNN",
    "EEGNN expected evolve",
    "EEGNN expected freeze",
    "EEGNN sampled evolve",
    "EEGNN sampled freeze",
]
BOTH = ["SASGNN", "EEGNN"]


# symmetries


@pytest.mark.parametrize("level", ["node", "graph"])
@pytest.mark.parametrize("kind", KINDS)
def test_permuting_nodes_permutes_outputs_and_exits(kind: str, level: str) -> None:
    model = build(kind, level=level, edge_dim=2).double().eval()
    x, attr = features().double(), edge_features().double()
    order = torch.randperm(NUM_NODES, generator=torch.Generator().manual_seed(2))
    place = order.argsort()  # node i of the original is node place[i] of the other
    out, exits = model(x, EDGE_INDEX, attr, return_exits=True)
    other, other_exits = model(x[order], place[EDGE_INDEX], attr, return_exits=True)
    if level == "node":
        out, layer, time = out[order], exits.layer[order], exits.time[order]
    else:
        layer, time = exits.layer, exits.time
    torch.testing.assert_close(other, out)
    assert torch.equal(other_exits.layer, layer)
    torch.testing.assert_close(other_exits.time, time)


@pytest.mark.parametrize("kind", [k for k in KINDS if k != "SASGNN"])
def test_units_of_the_models_under_test_leave_at_different_layers(kind: str) -> None:
    _, exits = build(kind).predict(features(), EDGE_INDEX)
    assert exits.layer.unique().numel() >= 2


@pytest.mark.parametrize("kind", [k for k in KINDS if k != "SASGNN"])
def test_who_left_moves_on_only_with_evolve(kind: str) -> None:
    _, exits = build(kind).predict(features(), EDGE_INDEX)
    step = torch.arange(exits.tau.size(0)).unsqueeze(-1)
    after = step >= exits.layer
    assert after.any()
    assert (exits.tau[~after] > 0).all()
    assert bool((exits.tau[after] > 0).all()) is kind.endswith("evolve")
    assert bool((exits.tau[after] == 0).all()) is kind.endswith("freeze")
    torch.testing.assert_close(exits.time, exits.tau.masked_fill(after, 0.0).sum(0))


@pytest.mark.parametrize("level", ["node", "graph"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_order_of_edges_does_not_matter(kind: str, level: str) -> None:
    model = build(kind, level=level, edge_dim=2).double().eval()
    x, attr = features().double(), edge_features().double()
    order = torch.randperm(EDGE_INDEX.size(1), generator=torch.Generator().manual_seed(2))
    torch.testing.assert_close(
        model(x, EDGE_INDEX[:, order], attr[order]), model(x, EDGE_INDEX, attr)
    )


PATH = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
PAIR = torch.tensor([[0, 1], [1, 0]])
GRAPHS = [(3, PATH), (2, PAIR), (2, NO_EDGES), (1, NO_EDGES), (4, PATH), (2, PAIR)]


def batched() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    x = torch.cat([features(n, seed=g) for g, (n, _) in enumerate(GRAPHS)])
    attr = torch.cat([edge_features(e.size(1), seed=g) for g, (_, e) in enumerate(GRAPHS)])
    start = np.cumsum([0, *(n for n, _ in GRAPHS)])
    edge_index = torch.cat([e + int(s) for (_, e), s in zip(GRAPHS, start, strict=False)], dim=1)
    batch = torch.repeat_interleave(torch.arange(len(GRAPHS)), torch.tensor([n for n, _ in GRAPHS]))
    return x, edge_index, attr, batch


@pytest.mark.parametrize("pool", ["mean", "add", "max"])
@pytest.mark.parametrize("kind", [*KINDS, "EEGNN mean head", "EEGNN sas head"])
def test_a_batch_of_graphs_equals_its_graphs_one_by_one(kind: str, pool: str) -> None:
    options: dict[str, Any] = {"level": "graph", "edge_dim": 2, "edge_term": "linear", "pool": pool}
    if kind.endswith("head"):
        options["confidence"], kind = kind.split()[1], "EEGNN"
    model = build(kind, **options).double().eval()
    x, edge_index, attr, batch = batched()
    out, exits = model(x.double(), edge_index, attr.double(), batch, return_exits=True)
    assert out.shape == (len(GRAPHS), 3)
    if kind != "SASGNN":
        assert exits.layer.unique().numel() >= 2  # some graphs are dropped before others
    for g, (n, edges) in enumerate(GRAPHS):
        own, left = model(
            features(n, seed=g).double(),
            edges,
            edge_features(edges.size(1), seed=g).double(),
            return_exits=True,
        )
        torch.testing.assert_close(out[g : g + 1], own)
        assert exits.layer[g] == left.layer[0]
        torch.testing.assert_close(exits.time[g], left.time[0])


@pytest.mark.parametrize(
    ("kind", "training"),
    [  # the sampled objective draws noise in training
        *((kind, False) for kind in KINDS),
        *((kind, True) for kind in KINDS if "sampled" not in kind),
    ],
)
def test_node_predictions_in_a_batch_equal_those_alone(kind: str, training: bool) -> None:
    model = build(kind, edge_dim=2).double().train(training)
    x, edge_index, attr, batch = batched()
    out = model(x.double(), edge_index, attr.double(), batch)
    alone = [
        model(features(n, seed=g).double(), edges, edge_features(edges.size(1), seed=g).double())
        for g, (n, edges) in enumerate(GRAPHS)
    ]
    torch.testing.assert_close(out, torch.cat(alone))


@pytest.mark.parametrize("kind", KINDS)
def test_components_of_a_graph_do_not_see_each_other(kind: str) -> None:
    model = build(kind).double().eval()
    x = features().double()
    out = model(x, EDGE_INDEX)
    torch.testing.assert_close(out[4:6], model(x[4:6], PAIR))
    torch.testing.assert_close(out[6:7], model(x[6:7], NO_EDGES))


@pytest.mark.parametrize("kind", KINDS)
def test_an_edge_list_and_an_adjacency_give_the_same_bits(kind: str) -> None:
    model = build(kind, level="graph").eval()
    x, edge_index, _, batch = batched()
    adj = Adjacency.from_edge_index(edge_index, x.size(0), batch)
    assert torch.equal(model(x, adj), model(x, edge_index, batch=batch))


@pytest.mark.parametrize("kind", KINDS)
def test_a_change_of_the_edge_list_in_place_is_seen(kind: str) -> None:
    model = build(kind).eval()
    x, edge_index = features(), EDGE_INDEX.clone()
    before = model(x, edge_index)
    edge_index.fill_(0)
    after = model(x, edge_index)
    assert not torch.equal(before, after)
    assert torch.equal(after, model(x, NO_EDGES))


# graphs at the edge


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("level", ["node", "graph"])
@pytest.mark.parametrize("n", [0, 1, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_graphs_without_edges_work(kind: str, n: int, level: str, training: bool) -> None:
    model = build(kind, level=level).train(training)
    out, exits = model(features(n), NO_EDGES, return_exits=True)
    units = n if level == "node" else 1
    assert out.shape == (units, 3)
    assert exits.layer.shape == exits.time.shape == (units,)
    assert exits.tau.shape[1] == units
    assert out.isfinite().all()
    assert exits.cost.isfinite()
    out.sum().backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_without_graphs_works(kind: str, training: bool) -> None:
    model = build(kind, level="graph").train(training)
    out = model(features(0), NO_EDGES, batch=torch.zeros(0, dtype=torch.int64))
    assert out.shape == (0, 3)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_a_graph_without_nodes_may_stand_in_a_batch(kind: str, training: bool) -> None:
    model = build(kind, level="graph").train(training)
    out = model(features(3), PATH, batch=torch.tensor([1, 1, 1]))
    assert out.shape == (2, 3)
    assert out.isfinite().all()


@pytest.mark.parametrize("level", ["node", "graph"])
@pytest.mark.parametrize("model", [SASGNN, EEGNN])
def test_graphs_without_features_work(model: type[GraphModel], level: str) -> None:
    torch.manual_seed(0)
    net = model(0, 8, 3, 4, level=level)  # type: ignore[call-arg, arg-type]
    out = net(None, PATH)
    assert out.shape == (3 if level == "node" else 1, 3)
    torch.testing.assert_close(net.eval()(torch.zeros(3, 0), PATH), net(None, PATH))
    adj = Adjacency.from_edge_index(PATH, 5)
    assert net(None, adj).shape == (5 if level == "node" else 1, 3)
    out.sum().backward()
    assert net.encoder.bias.grad is not None


@pytest.mark.parametrize("kind", BOTH)
def test_a_directed_edge_list_warns_once_and_is_used_both_ways(kind: str) -> None:
    model = build(kind).eval()
    directed = torch.tensor([[0, 1], [1, 2]])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        out = model(features(3), directed)
        again = model(features(3), directed)
    assert [w.category for w in caught] == [UserWarning]
    assert "edge_index is directed" in str(caught[0].message)
    assert caught[0].filename == __file__
    assert torch.equal(out, again)
    torch.testing.assert_close(out, model(features(3), PATH))


@pytest.mark.parametrize("kind", BOTH)
def test_self_loops_change_nothing(kind: str) -> None:
    model = build(kind, edge_dim=2).eval()
    loops = torch.cat([EDGE_INDEX, torch.tensor([[0, 6], [0, 6]])], dim=1)
    attr = edge_features()
    with_loops = torch.cat([attr, torch.full((2, 2), 100.0)])
    torch.testing.assert_close(
        model(features(), loops, with_loops), model(features(), EDGE_INDEX, attr)
    )


# the reader's own training loop


def ring(n: int) -> Tensor:
    node = torch.arange(n)
    following = (node + 1) % n
    return torch.stack([torch.cat([node, following]), torch.cat([following, node])])


def loss_of(task: str, out: Tensor, y: Tensor) -> Tensor:
    if task == "classification":
        return F.cross_entropy(out, y)
    if task == "multilabel":
        return F.binary_cross_entropy_with_logits(out, y)
    return F.mse_loss(out, y)


@pytest.mark.parametrize("level", ["node", "graph"])
@pytest.mark.parametrize("task", ["classification", "multilabel", "regression"])
@pytest.mark.parametrize("kind", ["SASGNN", "EEGNN expected", "EEGNN sampled"])
def test_a_plain_training_loop_lowers_the_loss(kind: str, task: str, level: str) -> None:
    name, *objective = kind.split()
    torch.manual_seed(0)
    options: dict[str, Any] = {"objective": objective[0]} if objective else {}
    model_class: Callable[..., GraphModel] = SASGNN if name == "SASGNN" else EEGNN
    model = model_class(4, 16, 3, 4, level=level, task=task, **options)
    if level == "node":
        x, edge_index, batch = features(30, 4), ring(30), None
        signal = x[:, :3]
    else:
        x, batch = features(60, 4), torch.arange(20).repeat_interleave(3)
        edge_index = torch.cat([ring(3) + 3 * g for g in range(20)], dim=1)
        signal = x[:, :3].view(20, 3, 3).mean(1)
    y = {
        "classification": signal.argmax(1),
        "multilabel": (signal > 0).float(),
        "regression": signal,
    }[task]
    mask = torch.arange(y.size(0)) % 3 != 0
    optimiser = torch.optim.Adam(model.parameters(), lr=0.02)
    losses = []
    for _ in range(40):
        optimiser.zero_grad()
        loss = loss_of(task, model(x, edge_index, batch=batch)[mask], y[mask])
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < 0.7 * losses[0]
    before, after = (
        losses[0],
        loss_of(task, model.eval()(x, edge_index, batch=batch)[mask], y[mask]),
    )
    assert after.item() < 0.7 * before


@pytest.mark.parametrize("level", ["node", "graph"])
def test_the_expected_output_in_training_is_a_log_probability(level: str) -> None:
    model = build("EEGNN expected", level=level).double()
    out = model(features().double(), EDGE_INDEX)
    torch.testing.assert_close(out.exp().sum(-1), torch.ones(out.size(0), dtype=torch.float64))
    assert (out <= 0).all()


@pytest.mark.parametrize("kind", KINDS)
def test_every_parameter_gets_a_gradient(kind: str) -> None:
    model = build(kind, edge_dim=2)
    x, attr = features(), edge_features()
    out, exits = model(x, EDGE_INDEX, attr, return_exits=True)
    (out.pow(2).sum() + exits.cost).backward()
    for name, p in model.named_parameters():
        assert p.grad is not None, name
        assert p.grad.isfinite().all(), name


@pytest.mark.parametrize("kind", [k for k in KINDS if k != "SASGNN"])
def test_the_cost_asks_for_earlier_exits(kind: str) -> None:
    model = build(kind)
    optimiser = torch.optim.SGD(model.parameters(), lr=1.0)
    costs = []
    for _ in range(20):
        optimiser.zero_grad()
        _, exits = model(features(), EDGE_INDEX, return_exits=True)
        exits.cost.backward()
        optimiser.step()
        costs.append(exits.cost.item())
    assert 0 <= costs[-1] < 0.5 * costs[0] <= 0.5


def test_training_samples_with_noise_and_evaluation_does_not() -> None:
    model = build("EEGNN sampled")
    x = features()
    torch.manual_seed(1)
    first, second = model(x, EDGE_INDEX), model(x, EDGE_INDEX)
    torch.manual_seed(1)
    assert torch.equal(model(x, EDGE_INDEX), first)
    assert not torch.equal(first, second)
    model.eval()
    assert torch.equal(model(x, EDGE_INDEX), model(x, EDGE_INDEX))


# precision, copies, modes


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


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", ["deepcopy", "pickle"])
def test_copies_are_equal_and_independent(kind: str, way: str) -> None:
    model = build(kind).eval()
    x = features()
    expected = model(x, EDGE_INDEX)
    twin = copy.deepcopy(model) if way == "deepcopy" else pickle.loads(pickle.dumps(model))
    assert torch.equal(twin(x, EDGE_INDEX), expected)
    assert twin.config == model.config
    twin.reset_parameters()
    assert not torch.equal(twin(x, EDGE_INDEX), expected)
    assert torch.equal(model(x, EDGE_INDEX), expected)


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


@pytest.mark.parametrize("max_layers", [0, 2, 6, 99])
@pytest.mark.parametrize("kind", KINDS)
def test_nobody_stays_longer_than_max_layers(kind: str, max_layers: int) -> None:
    model = build(kind).double()
    x = features().double()
    out, exits = model.predict(x, EDGE_INDEX, max_layers=max_layers)
    assert int(exits.layer.max()) <= min(max_layers, 6)
    assert exits.num_layers == 6
    if max_layers == 0:
        torch.testing.assert_close(out, model.decoder(model.encoder(x)).detach())
    if max_layers >= 6:
        assert torch.equal(out, model.predict(x, EDGE_INDEX)[0])


@pytest.mark.parametrize("kind", [k for k in KINDS if k != "SASGNN"])
def test_the_threshold_moves_everyone_from_the_first_layer_to_the_last(kind: str) -> None:
    model = build(kind)
    _, at_once = model.predict(features(), EDGE_INDEX, exit_threshold=0.0)
    _, never = model.predict(features(), EDGE_INDEX, exit_threshold=1.0)
    assert at_once.layer.tolist() == [0] * NUM_NODES
    assert never.layer.tolist() == [6] * NUM_NODES


@pytest.mark.parametrize("model_class", [SASGNN, EEGNN])
def test_repr_is_one_line(model_class: type[GraphModel]) -> None:
    text = repr(model_class(5, 8, 3, 6, level="graph"))  # type: ignore[call-arg]
    assert text == f"{model_class.__name__}(5, 8, 3, num_layers=6, level='graph')"


@pytest.mark.parametrize("kind", KINDS)
def test_reset_draws_all_weights_anew_and_is_seeded(kind: str) -> None:
    heads = {} if kind == "SASGNN" else {"head_layers": 2}
    model = build(kind, edge_dim=2, decoder_layers=2, **heads)
    start = {k: p.detach().clone() for k, p in model.named_parameters()}
    torch.manual_seed(5)
    model.reset_parameters()
    first = {k: p.detach().clone() for k, p in model.named_parameters()}
    same = [k for k in start if torch.equal(start[k], first[k])]
    assert same == ([] if kind == "SASGNN" else ["loop.confidence.head.lins.1.bias"])
    torch.manual_seed(5)
    model.reset_parameters()
    for name, p in model.named_parameters():
        assert torch.equal(p, first[name])


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


@pytest.mark.parametrize("model_class", [SASGNN, EEGNN])
def test_config_holds_every_argument_of_the_constructor(model_class: type[GraphModel]) -> None:
    build_one: Callable[..., GraphModel] = model_class
    parameters = inspect.signature(model_class).parameters
    model = build_one(5, 8, 3, dropout=0.25, pool="max")
    assert list(model.config) == list(parameters)
    given_values = {
        "in_channels": 5, "hidden_channels": 8, "out_channels": 3, "dropout": 0.25, "pool": "max"
    }  # fmt: skip
    for name, parameter in parameters.items():
        assert model.config[name] == given_values.get(name, parameter.default)
    assert build_one(**model.config).config == model.config


# the paper's sizes


def count(model: nn.Module) -> int:
    return sum(p.numel() for p in model.parameters())


@pytest.mark.parametrize(
    ("in_channels", "out_channels", "parameters"),
    [(301, 2, 11840), (300, 18, 12320), (7, 2, 2432), (10, 2, 2528), (300, 5, 11904)],
    ids=["Questions", "Roman-empire", "Minesweeper", "Tolokers", "Amazon-ratings"],
)
def test_sasgnn_has_the_papers_number_of_parameters(
    in_channels: int, out_channels: int, parameters: int
) -> None:
    assert count(SASGNN(in_channels, 32, out_channels, storage="paper")) == parameters


@pytest.mark.parametrize(
    ("in_channels", "out_channels", "head_layers", "head_channels", "parameters"),
    [
        (300, 18, 2, 32, 14562),
        (7, 2, 2, 32, 4674),
        (10, 2, 2, 32, 4770),
        (300, 5, 2, 32, 14146),
        (301, 2, 3, 8, 12562),
    ],
    ids=["Roman-empire", "Minesweeper", "Tolokers", "Amazon-ratings", "Questions"],
)
def test_eegnn_has_the_papers_number_of_parameters(
    in_channels: int, out_channels: int, head_layers: int, head_channels: int, parameters: int
) -> None:
    model = EEGNN(
        in_channels,
        32,
        out_channels,
        storage="paper",
        head_layers=head_layers,
        head_channels=head_channels,
    )
    assert count(model) == parameters


# bad input


@pytest.mark.parametrize(
    ("x", "error", "message"),
    [
        (features().long(), TypeError, r"x must be floating point, got torch.int64"),
        (features().bool(), TypeError, r"x must be floating point"),
        (features() + 0j, TypeError, r"x must be floating point"),
        (features().double(), TypeError, r"x has dtype torch.float64, but .* torch.float32"),
        (features().half(), TypeError, r"x has dtype torch.float16"),
        (features(channels=4), ValueError, r"x must have shape \[7, 5\], got \[7, 4\]"),
        (features(channels=0), ValueError, r"x must have shape"),
        (features()[:, 0], ValueError, r"x must have shape \[7, 5\], got \[7\]"),
        (features().unsqueeze(0), ValueError, r"x must have shape"),
        (torch.tensor(1.0), ValueError, r"x must have shape"),
        (features().numpy(), TypeError, r"x must be a torch.Tensor, got ndarray"),
        (features().tolist(), TypeError, r"x must be a torch.Tensor, got list"),
        (None, ValueError, r"x must have shape \[N, 5\], got None"),
    ],
)
@pytest.mark.parametrize("kind", BOTH)
def test_bad_features_are_refused(kind: str, x: Any, error: type[Exception], message: str) -> None:
    model = build(kind)
    adj = Adjacency.from_edge_index(EDGE_INDEX, NUM_NODES)
    with pytest.raises(error, match=message):
        model(x, adj)
    with pytest.raises(error, match=message):
        model.predict(x, adj)
    with pytest.raises((TypeError, ValueError), match=r"\bx\b|edge_index holds the node"):
        model(x, EDGE_INDEX)


@quick
@given(
    row=st.integers(0, NUM_NODES - 1),
    column=st.integers(0, 4),
    value=st.sampled_from([math.nan, math.inf, -math.inf]),
    scale=st.sampled_from([1.0, 1e38]),
    kind=st.sampled_from(BOTH),
)
def test_one_value_that_is_not_finite_is_found(
    row: int, column: int, value: float, scale: float, kind: str
) -> None:
    x = features().clamp(-1, 1) * scale
    x[row, column] = value
    with pytest.raises(ValueError, match=f"x holds NaN or infinite values, first in row {row}"):
        build(kind)(x, EDGE_INDEX)


def test_opposite_infinities_do_not_cancel() -> None:
    x = features()
    x[1, 0], x[2, 0] = math.inf, -math.inf
    with pytest.raises(ValueError, match="x holds NaN or infinite values, first in row 1"):
        build("SASGNN")(x, EDGE_INDEX)


def test_huge_but_finite_features_are_not_refused() -> None:
    x = torch.full((NUM_NODES, 5), 3e38)  # their sum is infinite, they are not
    assert build("SASGNN").predict(x, NO_EDGES)[0].shape == (NUM_NODES, 3)


@pytest.mark.parametrize("rows", [NUM_NODES - 1, NUM_NODES + 1, 0])
def test_a_wrong_number_of_rows_is_refused(rows: int) -> None:
    adj = Adjacency.from_edge_index(EDGE_INDEX, NUM_NODES)
    with pytest.raises(ValueError, match=rf"x must have shape \[7, 5\], got \[{rows}, 5\]"):
        build("EEGNN")(features(rows), adj)


def test_more_nodes_in_the_edges_than_rows_are_refused() -> None:
    with pytest.raises(ValueError, match="edge_index holds the node 5, but with num_nodes=4"):
        build("EEGNN")(features(4), EDGE_INDEX)


@pytest.mark.parametrize(
    ("attr", "error", "message"),
    [
        (None, ValueError, r"edge_attr is needed"),
        (edge_features(9), ValueError, r"edge_attr must have shape \[10, 2\], got \[9, 2\]"),
        (edge_features()[:, :1], ValueError, r"edge_attr must have shape \[10, 2\]"),
        (edge_features()[:, 0], ValueError, r"edge_attr must have shape \[10, 2\]"),
        (edge_features() * math.nan, ValueError, r"edge_attr holds NaN or infinite"),
        (edge_features() * math.inf, ValueError, r"edge_attr holds NaN or infinite"),
        (edge_features().long(), TypeError, r"edge_attr must be floating point"),
        (edge_features().double(), TypeError, r"edge_attr has dtype torch.float64"),
        (edge_features().numpy(), TypeError, r"edge_attr must be a torch.Tensor"),
    ],
)
@pytest.mark.parametrize("kind", BOTH)
def test_bad_edge_features_are_refused(
    kind: str, attr: Any, error: type[Exception], message: str
) -> None:
    model = build(kind, edge_dim=2)
    with pytest.raises(error, match=message):
        model(features(), EDGE_INDEX, attr)
    with pytest.raises(error, match=message):
        model.predict(features(), Adjacency.from_edge_index(EDGE_INDEX, NUM_NODES), attr)


@pytest.mark.parametrize("kind", BOTH)
def test_unexpected_edge_features_are_refused(kind: str) -> None:
    with pytest.raises(ValueError, match=r"edge_attr was given, but .* edge_dim=None"):
        build(kind)(features(), EDGE_INDEX, edge_features())


@pytest.mark.parametrize("kind", BOTH)
def test_a_batch_beside_an_adjacency_is_refused(kind: str) -> None:
    adj = Adjacency.from_edge_index(EDGE_INDEX, NUM_NODES)
    with pytest.raises(ValueError, match="batch must be given to Adjacency"):
        build(kind)(features(), adj, batch=torch.zeros(NUM_NODES, dtype=torch.int64))


@pytest.mark.parametrize(
    ("batch", "error", "message"),
    [
        (torch.zeros(6).long(), ValueError, r"batch must have shape \[7\], got \[6\]"),
        (torch.zeros(7), TypeError, r"batch must have dtype int64"),
        (torch.tensor([0, 0, 0, 0, 2, 2, 1]), ValueError, r"batch must be .*ascending"),
        (torch.tensor([0, 0, 0, 0, 1, 2, 2]), ValueError, r"edge_index joins node 4 of graph 1"),
        ([0] * 7, TypeError, r"batch must be a torch.Tensor"),
    ],
)
@pytest.mark.parametrize("kind", BOTH)
def test_a_bad_batch_is_refused(
    kind: str, batch: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        build(kind, level="graph")(features(), EDGE_INDEX.clone(), batch=batch)


SHARED_MISTAKES: list[tuple[str, Any, type[Exception]]] = [
    ("in_channels", -1, ValueError),
    ("in_channels", 5.0, TypeError),
    ("hidden_channels", 0, ValueError),
    ("hidden_channels", -8, ValueError),
    ("hidden_channels", "5", TypeError),
    ("hidden_channels", True, TypeError),
    ("hidden_channels", None, TypeError),
    ("out_channels", 0, ValueError),
    ("out_channels", False, TypeError),
    ("num_layers", 0, ValueError),
    ("num_layers", -3, ValueError),
    ("num_layers", "5", TypeError),
    ("num_layers", True, TypeError),
    ("num_layers", 2.0, TypeError),
    ("level", "edge", ValueError),
    ("level", None, ValueError),
    ("pool", "median", ValueError),
    ("task", "ranking", ValueError),
    ("dropout", 2, ValueError),
    ("dropout", -0.1, ValueError),
    ("dropout", math.nan, ValueError),
    ("dropout", "0.5", TypeError),
    ("decoder_layers", 0, ValueError),
    ("decoder_bias", "no", TypeError),
    ("conv_dropout", 2, ValueError),
    ("conv_norm", "instance", ValueError),
    ("activation", "gelu", ValueError),
    ("inner_activation", "gelu", ValueError),
    ("storage", "dense", ValueError),
    ("edge_dim", 0, ValueError),
    ("edge_dim", 1.5, TypeError),
    ("edge_term", "tanh", ValueError),
    ("edge_term", "relu", ValueError),  # without edge_dim
]
EEGNN_MISTAKES: list[tuple[str, Any, type[Exception]]] = [
    ("objective", "x", ValueError),
    ("after_exit", "stop", ValueError),
    ("confidence", "gat", ValueError),
    ("confidence", "linear", ValueError),
    ("temperature", "gat", ValueError),
    ("step_size", "fixed", ValueError),
    ("step_size", -0.5, ValueError),
    ("step_size", math.nan, ValueError),
    ("step_size", None, TypeError),
    ("continue_bias", math.inf, ValueError),
    ("nu0", -0.1, ValueError),
    ("nu0", "0.1", TypeError),
    ("hard", True, ValueError),  # with objective="expected"
    ("hard", "no", TypeError),
    ("head_norm", "no", TypeError),
    ("head_channels", 0, ValueError),
    ("head_channels", "3", TypeError),
    ("head_layers", 0, ValueError),
    ("head_scale", -1, ValueError),
]
SASGNN_MISTAKES: list[tuple[str, Any, type[Exception]]] = [
    ("step_size", -0.5, ValueError),
    ("step_size", math.inf, ValueError),
    ("step_size", "adaptive", TypeError),
    ("solver", "rk5", ValueError),
    ("step_size", 0, ValueError),
    ("shared", "no", TypeError),
]


@pytest.mark.parametrize(
    ("model_class", "name", "value", "error"),
    [
        *((SASGNN, *mistake) for mistake in (*SHARED_MISTAKES, *SASGNN_MISTAKES)),
        *((EEGNN, *mistake) for mistake in (*SHARED_MISTAKES, *EEGNN_MISTAKES)),
    ],
)
def test_a_bad_argument_of_the_constructor_is_named(
    model_class: Callable[..., GraphModel], name: str, value: Any, error: type[Exception]
) -> None:
    arguments = {"in_channels": 5, "hidden_channels": 8, "out_channels": 3, name: value}
    with pytest.raises(error, match=rf"\b{name}\b"):
        model_class(**arguments)


not_an_integer = st.one_of(
    st.floats(), st.text(max_size=3), st.booleans(), st.none(), st.lists(st.integers(), max_size=2)
)


@quick
@given(
    model_class=st.sampled_from([SASGNN, EEGNN]),
    name=st.sampled_from(["in_channels", "hidden_channels", "out_channels", "num_layers"]),
    value=st.one_of(not_an_integer, st.integers(max_value=-1)),
)
def test_sizes_must_be_positive_integers(
    model_class: Callable[..., GraphModel], name: str, value: Any
) -> None:
    arguments = {"in_channels": 5, "hidden_channels": 8, "out_channels": 3, name: value}
    with pytest.raises((TypeError, ValueError), match=f"{name} must be"):
        model_class(**arguments)


@pytest.mark.parametrize(
    ("knob", "value", "error"),
    [
        ("max_layers", -1, ValueError),
        ("max_layers", 2.0, TypeError),
        ("max_layers", "3", TypeError),
        ("max_layers", True, TypeError),
        ("exit_threshold", 1.5, ValueError),
        ("exit_threshold", -0.1, ValueError),
        ("exit_threshold", math.nan, ValueError),
        ("exit_threshold", math.inf, ValueError),
        ("exit_threshold", "0.5", TypeError),
        ("exit_threshold", True, TypeError),
    ],
)
@pytest.mark.parametrize("kind", [k for k in KINDS if k != "SASGNN"])
def test_a_bad_knob_is_named(kind: str, knob: str, value: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=f"{knob} must be"):
        build(kind).predict(features(), EDGE_INDEX, **{knob: value})


@pytest.mark.parametrize(
    ("knob", "value", "error"),
    [
        ("max_layers", -1, ValueError),
        ("max_layers", "3", TypeError),
        ("exit_threshold", 0.5, ValueError),
        ("sample", True, ValueError),
    ],
)
def test_a_model_without_exits_refuses_knobs_for_them(
    knob: str, value: Any, error: type[Exception]
) -> None:
    with pytest.raises(error, match=rf"\b{knob}\b"):
        build("SASGNN").predict(features(), EDGE_INDEX, **{knob: value})


def test_sampling_is_refused_where_nothing_is_drawn() -> None:
    with pytest.raises(ValueError, match="sample=True needs objective='sampled'"):
        build("EEGNN expected").predict(features(), EDGE_INDEX, sample=True)
