"""A bias for each exit."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor

from eegnn import EEGNN, load, save
from eegnn.analysis.layers import outputs_by_layer
from tests.nn.exit_examples import OUT, SEEDS, L, batch_of_graphs, features, make

CASES = [
    (level, objective, answer)
    for level in ("node", "graph")
    for objective, answer in (
        ("averaged", "mixture"),
        ("averaged", "state"),
        ("sampled", "state"),
    )
]


def pair(seed: int, **config: object) -> tuple[EEGNN, EEGNN, Tensor]:
    """A model without, the same with biases, and these."""
    plain = make(seed, task="regression", **config)
    biased = make(seed, task="regression", exit_bias=True, **config)
    assert biased.exit_bias is not None
    bias = torch.randn(L + 1, OUT, generator=torch.Generator().manual_seed(seed)).double()
    with torch.no_grad():
        biased.exit_bias.bias.copy_(bias)
    return plain, biased, bias


@pytest.mark.parametrize(("level", "objective", "answer"), CASES)
@pytest.mark.parametrize("skips", [True, False])
@pytest.mark.parametrize("seed", SEEDS)
def test_each_exit_is_shifted_by_its_own(
    seed: int, skips: bool, level: str, objective: str, answer: str
) -> None:
    graph = batch_of_graphs(seed)
    plain, biased, bias = pair(seed, level=level, objective=objective, answer=answer)
    if not skips:
        biased.loop.watch = lambda states: None
    given = (features(seed, graph.num_nodes), graph.edge_index())
    before = outputs_by_layer(plain, *given, batch=graph.batch())
    after, exits = biased.predict(*given, batch=graph.batch())
    assert exits.layer.equal(before.own_layer)
    assert before.log_stay is not None
    for unit, stop in enumerate(exits.layer.tolist()):
        here = before.out[:, unit] + bias
        if answer == "state":
            expected = here[stop]
        else:
            stay = before.log_stay[:, unit].exp()
            reach = torch.cat([stay.new_ones(1), stay])
            weight = torch.cat([reach[:stop] - reach[1 : stop + 1], reach[stop : stop + 1]])
            expected = weight @ here[: stop + 1]
        torch.testing.assert_close(after[unit], expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("level", ["node", "graph"])
def test_in_training_too(level: str) -> None:
    graph = batch_of_graphs(4)
    plain, biased, bias = pair(4, level=level, objective="averaged")
    given = (features(4, graph.num_nodes), graph.edge_index())
    _, before = plain(*given, batch=graph.batch(), return_exits=True)
    out, after = biased(*given, batch=graph.batch(), return_exits=True)
    assert before.outputs is not None
    assert after.outputs is not None
    assert after.log_weight is not None
    torch.testing.assert_close(after.outputs, before.outputs + bias.unsqueeze(1))
    mixed = (after.log_weight.exp().unsqueeze(-1) * after.outputs).sum(0)
    torch.testing.assert_close(out, mixed)


def test_the_gradient_of_a_bias_is_the_weight_of_its_exit() -> None:
    graph = batch_of_graphs(4)
    _, biased, _ = pair(4, level="node", objective="averaged")
    given = (features(4, graph.num_nodes), graph.edge_index())
    out, exits = biased(*given, batch=graph.batch(), return_exits=True)
    out.sum().backward()
    assert biased.exit_bias is not None
    assert exits.log_weight is not None
    assert biased.exit_bias.bias.grad is not None
    expected = exits.log_weight.exp().sum(1, keepdim=True).expand(-1, OUT)
    torch.testing.assert_close(biased.exit_bias.bias.grad, expected)


def test_layers_are_seen_with_their_biases() -> None:
    graph = batch_of_graphs(4)
    plain, biased, bias = pair(4, level="node", objective="averaged")
    given = (features(4, graph.num_nodes), graph.edge_index())
    for watched in (False, True):
        for model in (plain, biased):
            model.loop.watch = (lambda states: None) if watched else None
        before, after = (outputs_by_layer(model, *given) for model in (plain, biased))
        torch.testing.assert_close(after.out, before.out + bias.unsqueeze(1))


def test_a_limit_ends_with_the_bias_of_its_layer() -> None:
    graph = batch_of_graphs(4)
    plain, biased, bias = pair(4, level="node", objective="averaged", answer="state")
    given = (features(4, graph.num_nodes), graph.edge_index())
    before, _ = plain.predict(*given, max_layers=2, exit_threshold=1.0)
    after, _ = biased.predict(*given, max_layers=2, exit_threshold=1.0)
    torch.testing.assert_close(after, before + bias[2])


def test_it_starts_at_zero_is_reset_and_saved(tmp_path: Path) -> None:
    model = EEGNN(3, 4, 2, num_layers=5, exit_bias=True)
    assert model.exit_bias is not None
    assert model.exit_bias.bias.shape == (6, 2)
    assert not model.exit_bias.bias.any()
    torch.nn.init.ones_(model.exit_bias.bias)
    path = tmp_path / "model.safetensors"
    save(model, path)
    again = load(path)
    assert isinstance(again, EEGNN)
    assert again.exit_bias is not None
    assert again.exit_bias.bias.eq(1).all()
    model.reset_parameters()
    assert not model.exit_bias.bias.any()
    assert EEGNN(3, 4, 2).exit_bias is None
    with pytest.raises(TypeError, match="exit_bias"):
        EEGNN(3, 4, 2, exit_bias=1)  # type: ignore[arg-type]
