from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from eegnn import EEGNN
from tests.nn.exit_examples import (
    EXPECTED,
    SAMPLED,
    Config,
    L,
    batch_of_graphs,
    connected_or_not,
    features,
    last_bias_gradient,
    make,
)
from tests.transcription import Graph


def expected_share(model: EEGNN, graph: Graph, x: Tensor, seed: int) -> float:
    """Mean over units of Σ_l Π_{k≤l} p_k, from what the heads say when the model runs."""
    said: dict[str, list[Tensor]] = {"confidence": [], "temperature": []}
    hooks = [
        getattr(model.loop, name).register_forward_hook(
            lambda _, __, out, name=name: said[name].append(out.detach())
        )
        for name in said
    ]
    torch.manual_seed(seed)
    model(x, graph.edge_index(), batch=graph.batch())
    for hook in hooks:
        hook.remove()
    survival, steps = np.ones(len(said["temperature"][0])), 0.0
    for c, inverse in zip(said["confidence"], said["temperature"], strict=True):
        score = (c[:, 0] - c[:, 1]).numpy()
        if model.loop.objective == "expected":
            score = score * inverse.numpy()
        survival = survival / (1 + np.exp(-score))
        steps += float(survival.mean())
    return steps / model.num_layers


@pytest.mark.parametrize("level", ["node", "graph"])
@pytest.mark.parametrize("objective", [SAMPLED, EXPECTED], ids=["sampled", "expected"])
def test_cost_in_training_is_the_expected_share_of_the_budget(
    objective: Config, level: str
) -> None:
    graph = batch_of_graphs(3)
    model = make(3, level=level, **objective)
    x = features(3, graph.num_nodes)
    torch.manual_seed(11)
    _, exits = model(x, graph.edge_index(), batch=graph.batch(), return_exits=True)
    assert exits.cost.item() == pytest.approx(expected_share(model, graph, x, 11), abs=1e-12)
    exits.cost.backward()
    bias = last_bias_gradient(model)
    assert bias[0] > 0  # a preference for continuing costs more
    assert bias[1] < 0


@pytest.mark.parametrize("level", ["node", "graph"])
@pytest.mark.parametrize("objective", [SAMPLED, EXPECTED], ids=["sampled", "expected"])
def test_cost_at_evaluation_is_the_share_that_was_used(objective: Config, level: str) -> None:
    graph = batch_of_graphs(3)
    model = make(3, level=level, **objective)
    x = features(3, graph.num_nodes)
    _, exits = model.predict(x, graph.edge_index(), batch=graph.batch())
    assert exits.cost.item() == pytest.approx(exits.layer.double().mean().item() / L, abs=1e-12)
    assert 0 < exits.cost.item() < 1


def test_minimising_the_cost_makes_units_leave_earlier() -> None:
    graph, model = connected_or_not(0), make(0, continue_bias=3.0)
    x = features(0, 11)
    before = model.predict(x, graph.edge_index())[1].layer.double().mean()
    optimiser = torch.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(30):
        optimiser.zero_grad()
        model(x, graph.edge_index(), return_exits=True)[1].cost.backward()
        optimiser.step()
    assert model.predict(x, graph.edge_index())[1].layer.double().mean() < before - 1
