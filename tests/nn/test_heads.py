from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch import Tensor, nn

from eegnn import Adjacency
from eegnn.nn.heads import HEADS, MLP, Confidence, MeanGNN, SASHead, Temperature
from tests.nn.model_examples import count

NEIGHBOURS = {0: [1, 2], 1: [0], 2: [0, 3], 3: [2], 4: []}
Array = npt.NDArray[np.float64]


@pytest.fixture
def adj() -> Adjacency:
    pairs = [(i, j) for i, around in NEIGHBOURS.items() for j in around]
    return Adjacency.from_edge_index(torch.tensor(pairs).T, 5)


def states(channels: int) -> Tensor:
    return torch.randn(5, channels, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def mean_gnn_by_loops(head: MeanGNN, h: Tensor) -> Array:
    """W[h_i ‖ mean_j h_j] + b, node by node."""
    x: Array = h.numpy()
    for k, lin in enumerate(head.lins):
        assert isinstance(lin, nn.Linear)
        weight = lin.weight.detach().numpy()
        bias = lin.bias.detach().numpy() if lin.bias is not None else np.zeros(len(weight))
        rows = []
        for i, around in NEIGHBOURS.items():
            mean = sum((x[j] for j in around), np.zeros(x.shape[1])) / max(len(around), 1)
            rows.append(weight @ np.concatenate([x[i], mean]) + bias)
        x = np.stack(rows)
        if k < len(head.lins) - 1:
            x = np.maximum(x, 0)
    return x


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(
    ("widths", "num_layers"),
    [
        ((6, 9, 2), 1),
        ((2, 9, 6), 1),
        ((4, 9, 4), 1),
        ((6, 3, 2), 2),
        ((2, 6, 2), 2),
        ((3, 5, 7), 3),
    ],
    ids=["narrowing", "widening", "square", "two narrowing", "out and in", "three"],
)
def test_mean_gnn_is_linear_in_own_and_mean_state(
    adj: Adjacency, widths: tuple[int, int, int], num_layers: int, bias: bool
) -> None:
    head = MeanGNN(*widths, num_layers, bias).double()
    h = states(widths[0])
    out = head(h, adj).detach()
    assert out.shape == (5, widths[2])
    np.testing.assert_allclose(out.numpy(), mean_gnn_by_loops(head, h), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("widths", [(6, 1, 2), (2, 1, 6)])
def test_an_isolated_node_has_a_mean_of_zero(adj: Adjacency, widths: tuple[int, int, int]) -> None:
    head = MeanGNN(*widths).double()
    h = states(widths[0])
    lin = head.lins[0]
    assert isinstance(lin, nn.Linear)
    own = lin.weight[:, : widths[0]]
    torch.testing.assert_close(head(h, adj)[4], own @ h[4] + lin.bias)


@pytest.mark.parametrize(
    ("head", "parameters"),
    [
        (MeanGNN(32, 8, 2), 2 * 32 * 2 + 2),
        (MeanGNN(32, 8, 2, 2), 2 * 32 * 8 + 8 + 2 * 8 * 2 + 2),
        (MeanGNN(32, 8, 2, 3, bias=False), 2 * 32 * 8 + 2 * 8 * 8 + 2 * 8 * 2),
        (MLP(32, 8, 1, bias=False), 32),
        (MLP(32, 8, 2, 3), 32 * 8 + 8 + 8 * 8 + 8 + 8 * 2 + 2),
        (SASHead(32, 8, 2), 32 * 8 + 8 + 8 * 7 // 2 + 8 * 9 // 2 + 8 * 2 + 2),
        (SASHead(32, 8, 2, 5, bias=False), 32 * 8 + 8 * 7 // 2 + 8 * 9 // 2 + 8 * 2),
    ],
)
def test_parameter_counts(head: nn.Module, parameters: int) -> None:
    assert count(head) == parameters


@pytest.mark.parametrize("num_layers", [1, 2, 3])
def test_mlp_is_linear_layers_with_relu_between(num_layers: int) -> None:
    head = MLP(4, 6, 3, num_layers).double()
    h = states(4)
    expected = h
    for k, lin in enumerate(head.lins):
        assert isinstance(lin, nn.Linear)
        expected = expected @ lin.weight.T + lin.bias
        if k < num_layers - 1:
            expected = expected.clamp(min=0)
    torch.testing.assert_close(head(h), expected)
    assert len(head.lins) == num_layers


@pytest.mark.parametrize("num_layers", [1, 3])
def test_sas_head_is_a_small_sas_gnn(adj: Adjacency, num_layers: int) -> None:
    head = SASHead(4, 6, 2, num_layers).double()
    first, last = head.lins
    dense = torch.zeros(5, 5, dtype=torch.float64)
    for i, around in NEIGHBOURS.items():
        for j in around:
            dense[i, j] = 1 / math.sqrt(len(around) * len(NEIGHBOURS[j]))
    h = torch.relu(first(states(4)))
    for _ in range(num_layers):
        inner = torch.relu(h @ head.conv.omega)
        h = h + torch.relu(torch.tanh(dense @ h @ head.conv.weight - inner))
    torch.testing.assert_close(head(states(4), adj), last(h))


@pytest.mark.parametrize(("name", "uses_graph"), [("mean", True), ("mlp", False), ("sas", True)])
def test_heads_say_whether_they_read_neighbours(
    adj: Adjacency, name: str, uses_graph: bool
) -> None:
    torch.manual_seed(0)  # with some weights a neighbour does not matter: ReLU∘tanh is often 0
    head: Any = HEADS[name](4, 6, 2, 1).double()
    assert head.uses_graph is uses_graph
    assert Confidence(copy.deepcopy(head)).uses_graph is uses_graph
    assert Temperature(copy.deepcopy(head)).uses_graph is uses_graph
    h = states(4)
    changed = h.clone()
    changed[1] += 1.0
    moved = (head(h, adj) != head(changed, adj)).any(dim=1)
    assert bool(moved[0]) is uses_graph  # 0 is a neighbour of 1
    assert bool(moved[1])
    assert not bool(moved[4])


@pytest.mark.parametrize("name", list(HEADS))
def test_reset_draws_anew(adj: Adjacency, name: str) -> None:
    head: Any = HEADS[name](4, 6, 2, 2)
    before = [p.detach().clone() for p in head.parameters()]
    head.reset_parameters()
    assert not any(torch.equal(a, b) for a, b in zip(before, head.parameters(), strict=True))


@pytest.mark.parametrize("head", [MeanGNN, MLP])
@pytest.mark.parametrize(
    ("arguments", "error", "name"),
    [
        ((0, 4, 2, 1), ValueError, "in_channels"),
        ((4, 0, 2, 1), ValueError, "hidden_channels"),
        ((4, 4, -2, 1), ValueError, "out_channels"),
        ((4, 4, 2, 0), ValueError, "num_layers"),
        ((4, 4, 2, 1.0), TypeError, "num_layers"),
        (("4", 4, 2, 1), TypeError, "in_channels"),
    ],
)
def test_bad_sizes_are_refused(
    head: type[nn.Module], arguments: tuple[Any, ...], error: type[Exception], name: str
) -> None:
    with pytest.raises(error, match=f"{name} must be"):
        head(*arguments)


def test_temperature_is_softplus_plus_nu0(adj: Adjacency) -> None:
    head = MLP(4, 4, 1, bias=False).double()
    h = states(4)
    raw = (h @ head.lins[0].weight.T).detach().view(-1).numpy()  # type: ignore[operator]
    out = Temperature(head, nu0=0.25)(h, adj)
    assert out.shape == (5,)
    expected = np.log1p(np.exp(raw)) + 0.25
    np.testing.assert_allclose(out.detach().numpy(), expected, rtol=1e-12)


def test_temperature_never_falls_below_nu0(adj: Adjacency) -> None:
    head = MLP(1, 1, 1, bias=False)
    with torch.no_grad():
        head.lins[0].weight.fill_(1.0)  # type: ignore[operator]
    low = torch.full((5, 1), -1e4, requires_grad=True)
    out = Temperature(head, nu0=0.1)(low, adj)
    out.sum().backward()
    assert torch.equal(out, torch.full((5,), 0.1))
    assert low.grad is not None
    assert low.grad.isfinite().all()


@pytest.mark.parametrize("nu0", [-0.1, math.nan, math.inf])
def test_a_bad_nu0_is_refused(nu0: float) -> None:
    with pytest.raises(ValueError, match="nu0 must be at least 0"):
        Temperature(MLP(4, 4, 1), nu0)


@pytest.mark.parametrize("name", list(HEADS))
def test_confidence_starts_with_its_preference_and_smaller_weights(name: str) -> None:
    torch.manual_seed(0)
    plain: Any = HEADS[name](4, 6, 2, 2)
    torch.manual_seed(0)
    head: Any = HEADS[name](4, 6, 2, 2)
    Confidence(head, continue_bias=5.0)
    assert head.lins[-1].bias.tolist() == [2.5, -2.5]
    assert (head.lins[-1].weight.abs() < plain.lins[-1].weight.abs()).all()
    assert torch.equal(head.lins[0].weight, plain.lins[0].weight)


@pytest.mark.parametrize("name", list(HEADS))
def test_without_a_preference_heads_start_as_they_were_drawn(name: str) -> None:
    head: Any = HEADS[name](4, 6, 2, 2)
    drawn = copy.deepcopy(head.state_dict())
    for key, value in Confidence(head, continue_bias=None).head.state_dict().items():
        assert torch.equal(value, drawn[key])


def test_a_temperature_may_start_the_same_for_every_unit(adj: Adjacency) -> None:
    head = MLP(4, 4, 1, bias=False).double()
    out = Temperature(head, nu0=0.25, zero_init=True)(states(4), adj)
    torch.testing.assert_close(out, torch.full((5,), math.log(2) + 0.25, dtype=torch.float64))


def test_confidence_passes_the_head_through(adj: Adjacency) -> None:
    confidence = Confidence(MeanGNN(4, 4, 2, 2).double())
    assert torch.equal(confidence(states(4), adj), confidence.head(states(4), adj))


def test_resetting_confidence_restores_its_start() -> None:
    head = MeanGNN(16, 4, 2, 2)
    confidence = Confidence(head, continue_bias=2.0)
    first, last = head.lins
    assert isinstance(first, nn.Linear)
    assert isinstance(last, nn.Linear)
    before, largest = first.weight.detach().clone(), last.weight.abs().max()
    with torch.no_grad():
        for p in confidence.parameters():
            p.fill_(9.0)
    confidence.reset_parameters()
    assert last.bias.tolist() == [1.0, -1.0]
    assert first.weight.abs().max() < 1
    assert not torch.equal(first.weight, before)
    assert last.weight.abs().max() <= 2 * largest


@pytest.mark.parametrize(("value", "error"), [(math.nan, ValueError), ("3", TypeError)])
def test_a_bad_start_is_refused(value: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="continue_bias must be"):
        Confidence(MeanGNN(4, 4, 2), value)


def test_repr() -> None:
    assert repr(Confidence(MeanGNN(4, 8, 2), None)) == (
        "Confidence(MeanGNN(4, 2), continue_bias=None)"
    )
    assert repr(Temperature(MLP(4, 8, 1))) == "Temperature(MLP(4, 1), nu0=0.1)"
    assert repr(SASHead(4, 8, 2)) == "SASHead(4, 2)"
