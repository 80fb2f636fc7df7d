"""What a unit says when it leaves."""

from __future__ import annotations

import pytest
import torch

from eegnn import EEGNN, Adjacency, EarlyExit
from eegnn.nn.mixture import exit_log_probabilities, stopped_log_weights
from tests.nn.exit_examples import EXPECTED, SAMPLED, SEEDS, batch_of_graphs, features, make


@pytest.mark.parametrize("objective", ["expected", "averaged"])
@pytest.mark.parametrize("task", ["classification", "multilabel", "regression"])
@pytest.mark.parametrize("level", ["node", "graph"])
@pytest.mark.parametrize("seed", SEEDS)
def test_who_never_leaves_answers_as_in_training(
    seed: int, level: str, task: str, objective: str
) -> None:
    graph = batch_of_graphs(seed)
    model = make(seed, **{**EXPECTED, "objective": objective, "level": level, "task": task})
    given = (features(seed, graph.num_nodes), graph.edge_index())
    trained = model(*given, batch=graph.batch())
    answered, _ = model.predict(*given, batch=graph.batch(), exit_threshold=1.0)
    torch.testing.assert_close(answered, trained.detach(), rtol=0, atol=1e-10)


def test_who_leaves_at_once_answers_with_its_first_state() -> None:
    graph = batch_of_graphs(3)
    model = make(3, **EXPECTED)
    x = features(3, graph.num_nodes)
    out, exits = model.predict(x, graph.edge_index(), exit_threshold=0.0)
    assert set(exits.layer.tolist()) == {0}
    first = model.decoder(model.encoder(x)).log_softmax(dim=-1)
    torch.testing.assert_close(out, first.detach(), rtol=0, atol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_the_exit_that_is_taken_counts_for_the_rest(seed: int) -> None:
    score = torch.randn(6, 9, generator=torch.Generator().manual_seed(seed)).double()
    layer = torch.arange(9).clamp(max=6)
    weight = stopped_log_weights(torch.nn.functional.logsigmoid(score).cumsum(0), layer).exp()
    whole = exit_log_probabilities(score).exp()
    for unit, stop in enumerate(layer.tolist()):
        torch.testing.assert_close(weight[:stop, unit], whole[:stop, unit])
        torch.testing.assert_close(weight[stop, unit], whole[stop:, unit].sum())
        assert weight[stop + 1 :, unit].tolist() == [0.0] * (6 - stop)


def test_the_default_follows_the_objective() -> None:
    assert EEGNN(3, 4, 2).loop.answer == "mixture"
    assert EEGNN(3, 4, 2, objective="averaged").loop.answer == "mixture"
    assert EEGNN(3, 4, 2, objective="sampled").loop.answer == "state"
    with pytest.raises(ValueError, match="answer='mixture' needs objective"):
        EEGNN(3, 4, 2, objective="sampled", answer="mixture")
    with pytest.raises(ValueError, match="answer"):
        EEGNN(3, 4, 2, answer="both")  # type: ignore[arg-type]


@pytest.mark.parametrize("config", [EXPECTED, SAMPLED], ids=["expected", "sampled"])
def test_without_a_decoder_the_states_at_the_exit_come_back(config: dict[str, object]) -> None:
    graph = batch_of_graphs(4)
    model = make(4, **config)
    loop = model.loop.eval()
    assert isinstance(loop, EarlyExit)
    x = features(4, graph.num_nodes)
    adj = Adjacency.from_edge_index(graph.edge_index(), graph.num_nodes)
    h = model.encoder(x)
    with torch.no_grad():
        states, exits = loop(h, adj)
        seen = [
            loop(h, adj, max_layers=layer, exit_threshold=1.0)[0]
            for layer in range(model.num_layers + 1)
        ]
    units = torch.arange(graph.num_nodes)
    torch.testing.assert_close(states, torch.stack(seen)[exits.layer, units])
