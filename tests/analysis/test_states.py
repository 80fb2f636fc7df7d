from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
from torch import Tensor

from eegnn import EEGNN
from eegnn.analysis.states import stacked_states, states_by_layer
from eegnn.nn.model import GraphModel
from eegnn.zoo.registry import ENTRIES, find
from tests.nn.exit_examples import batch_of_graphs, features, make
from tests.nn.model_examples import BOTH, EDGE_INDEX, build, edge_features
from tests.nn.model_examples import features as node_features

BATCH = torch.tensor([0, 0, 0, 0, 1, 1, 2])
#: Models that are no single state going through one layer after the other.
HIDDEN = ("graphcon", "phdgn", "apgcn", "cognn", "polynormer", "sgformer", "drew",
          "tuned-gcn", "tuned-sage", "tuned-gat")  # fmt: skip
SEEN = sorted(set(ENTRIES) - set(HIDDEN))


def made(name: str, **options: Any) -> GraphModel:
    torch.manual_seed(0)
    entry = ENTRIES[name]
    return find(entry.home)(5, 8, 3, 4, **entry.options, **options).eval()


def last_decoded(model: GraphModel, *inputs: Any, **knobs: Any) -> Tensor:
    """What the decoder was given last."""
    seen: list[Tensor] = []
    hook = model.decoder.register_forward_pre_hook(lambda _, args: seen.append(args[0]))
    model.predict(*inputs, **knobs)
    hook.remove()
    return seen[-1]


@pytest.mark.parametrize("name", SEEN)
def test_states_of_nodes_are_what_is_decoded_at_that_depth(name: str) -> None:
    model, inputs = made(name), (node_features(), EDGE_INDEX)
    knobs: dict[str, Any] = {"exit_threshold": 1.0} if hasattr(model, "loop") else {}
    states = stacked_states(model, *inputs)
    assert states.shape == (5, 7, 8)
    torch.testing.assert_close(states[0], model.encoder(inputs[0]))
    for layer, state in enumerate(states[1:], start=1):
        torch.testing.assert_close(state, last_decoded(model, *inputs, max_layers=layer, **knobs))


@pytest.mark.parametrize("pool", ["mean", "add"])
@pytest.mark.parametrize("name", SEEN)
def test_states_of_graphs_are_not_pooled(name: str, pool: str) -> None:
    model = made(name, level="graph", pool=pool)
    inputs = (node_features(), EDGE_INDEX, None, BATCH)
    knobs: dict[str, Any] = {"exit_threshold": 1.0} if hasattr(model, "loop") else {}
    last = stacked_states(model, *inputs)[-1]
    pooled = torch.stack(
        [getattr(last[g == BATCH], "sum" if pool == "add" else "mean")(0) for g in range(3)]
    )
    torch.testing.assert_close(pooled, last_decoded(model, *inputs, **knobs))


@pytest.mark.parametrize("level", ["node", "graph"])
@pytest.mark.parametrize("after_exit", ["evolve", "freeze"])
def test_nobody_leaves(level: Any, after_exit: Any) -> None:
    graph = batch_of_graphs(77)
    model = make(77, level=level, after_exit=after_exit)
    given = features(77, graph.num_nodes), graph.edge_index(), None, graph.batch()
    assert int(model.predict(*given)[1].layer.min()) < model.num_layers
    states = states_by_layer(model, *given)
    assert all(bool((a != b).any()) for a, b in itertools.pairwise(states))


@pytest.mark.parametrize("kind", BOTH)
def test_states_can_be_differentiated_by_those_before(kind: str) -> None:
    model = build(kind, edge_dim=2)
    states = states_by_layer(model, node_features(), EDGE_INDEX, edge_features())
    gradients = torch.autograd.grad(states[-1].sum(), states[:-1])
    assert all(bool(gradient.abs().sum() > 0) for gradient in gradients)
    assert not stacked_states(model, node_features(), EDGE_INDEX, edge_features()).requires_grad


@pytest.mark.parametrize("name", HIDDEN)
def test_models_whose_states_are_not_seen_say_so(name: str) -> None:
    with pytest.raises(ValueError, match="for its states to be seen"):
        states_by_layer(made(name), node_features(), EDGE_INDEX)


@pytest.mark.parametrize("kind", [*BOTH, "GCN"])
def test_the_model_is_left_as_it_was(kind: str) -> None:
    model = made("gcn") if kind == "GCN" else build(kind, dropout=0.5, level="graph")
    model.train()
    before = {name: dict(module.__dict__) for name, module in model.named_modules()}
    first, second = (stacked_states(model, node_features(), EDGE_INDEX) for _ in range(2))
    assert torch.equal(first, second)
    with pytest.raises(ValueError, match="x must have shape"):
        states_by_layer(model, node_features(channels=4), EDGE_INDEX)
    assert model.training
    for name, module in model.named_modules():
        assert module.__dict__.keys() == before[name].keys()
        assert not module._forward_pre_hooks
        assert getattr(module, "level", None) == before[name].get("level")
    assert isinstance(model, EEGNN) == (kind == "EEGNN")
