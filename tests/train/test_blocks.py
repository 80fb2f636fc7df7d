"""Training and evaluation by blocks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from eegnn.data.problem import Problem
from eegnn.train.batches import Batches
from eegnn.train.evaluate import evaluate
from eegnn.train.loop import Trainer
from eegnn.train.run import RunFolder
from tests.train.problems import (
    NOISY,
    Killed,
    graph_problem,
    killed_after,
    new_run,
    node_problem,
    outcome,
    resumed_run,
    small_config,
    undecided,
)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("blocks", [1, 4, 9])
def test_an_epoch_takes_every_training_node_once(blocks: int) -> None:
    problem = node_problem()
    graph = problem.graphs[0]
    batches = Batches(problem, 32, blocks=blocks)
    seen: list[int] = []
    for units in batches.training(seeded()):
        nodes = units.adj.nodes
        assert nodes is not None
        assert units.index is not None
        assert units.x is not None
        assert torch.equal(units.x, graph.x[nodes])
        counted = nodes[units.index]
        assert torch.equal(units.labels, graph.y[counted])
        assert batches.blocks is not None
        (number,) = batches.blocks.assignment[counted].unique().tolist()
        core = set(batches.blocks.cores[number].tolist())
        assert set(nodes.tolist()) == {(i + d) % 40 for i in core for d in (-1, 0, 1)}
        seen += counted.tolist()
    assert sorted(seen) == sorted(problem.train.tolist())


def test_the_order_of_blocks_is_that_of_the_generator() -> None:
    batches = Batches(node_problem(), 32, blocks=8)

    def order(generator: torch.Generator) -> list[int]:
        return [int(u.adj.nodes[0]) for u in batches.training(generator)]  # type: ignore[index]

    generator = seeded()
    first, second = order(generator), order(generator)
    assert sorted(first) == sorted(second)
    assert first != second
    assert order(seeded()) == first


@pytest.mark.parametrize("knobs", [{}, {"max_layers": 2}, {"exit_threshold": 0.2}], ids=str)
def test_scores_and_exits_are_those_of_the_whole_graph(tmp_path: Path, knobs: Any) -> None:
    problem = node_problem()
    model = undecided(new_run(tmp_path, problem).model, problem)
    parts = ("train", "val", "test")
    whole = evaluate(model, Batches(problem, 32), parts, **knobs)
    found = evaluate(model, Batches(problem, 32, blocks=5), parts, **knobs)
    assert len(whole["train"].layer.unique()) > 1
    for part in parts:
        assert torch.equal(found[part].layer, whole[part].layer)
        torch.testing.assert_close(found[part].out, whole[part].out, rtol=0, atol=1e-5)
        assert found[part].score == pytest.approx(whole[part].score)


def test_one_block_trains_as_the_whole_graph_does(tmp_path: Path) -> None:
    models, scores = [], []
    for blocks in (0, 1):
        run = new_run(
            tmp_path / str(blocks), node_problem(), blocks=blocks, options={"dropout": 0.3}
        )
        scores.append(run.fit()["test"])
        models.append(run.model)
    assert scores[0] == pytest.approx(scores[1], abs=1e-6)
    for a, b in zip(models[0].parameters(), models[1].parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("model", ["eegnn", "sasgnn"])
def test_a_run_by_blocks_learns(model: str, tmp_path: Path) -> None:
    run = new_run(tmp_path, node_problem(160), model=model, blocks=5, epochs=19)
    assert run.fit()["val"] > 0.9


def test_a_resumed_run_ends_with_the_same_bits(tmp_path: Path) -> None:
    problem, settings = node_problem(), {**NOISY, "blocks": 4, "epochs": 6}
    new_run(tmp_path / "unbroken", problem, **settings).fit()
    with pytest.raises(Killed):
        new_run(tmp_path / "broken", problem, **settings).fit(killed_after(3))
    resumed_run(tmp_path / "broken", problem).fit()
    assert outcome(tmp_path / "broken") == outcome(tmp_path / "unbroken")


def refused(tmp_path: Path, problem: Problem, message: str, **settings: Any) -> None:
    with pytest.raises(ValueError, match=message):
        Trainer(small_config(blocks=3, **settings), problem, RunFolder(tmp_path / "run"))
    assert not list(tmp_path.iterdir())


def test_what_cannot_go_by_blocks_is_refused_before_any_work(tmp_path: Path) -> None:
    refused(tmp_path, node_problem(), "blocks need model eegnn or sasgnn, got GCN", model="gcn")
    refused(tmp_path, graph_problem(), "level='node'")
    refused(tmp_path, node_problem(edge_dim=2), "without edge features")


def test_many_graphs_are_not_cut() -> None:
    with pytest.raises(ValueError, match=r"blocks cut one graph, but .* has many"):
        Batches(graph_problem(), 4, blocks=2)
