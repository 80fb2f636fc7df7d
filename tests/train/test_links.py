"""Training for links and for labels of pairs."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.utils import stochastic_blockmodel_graph

from eegnn.data.links import link_problem
from eegnn.data.problem import Problem
from eegnn.train.batches import Batches
from eegnn.train.config import make_config
from eegnn.train.loop import Trainer
from eegnn.train.run import RunFolder


def communities() -> Problem:
    """Links within four groups, which the features tell with noise."""
    torch.manual_seed(0)
    p = 0.01 + 0.5 * torch.eye(4)
    edge_index = stochastic_blockmodel_graph([15] * 4, p)
    group = torch.arange(60) // 15
    x = torch.nn.functional.one_hot(group, 4) + 0.3 * torch.randn(60, 4)
    return link_problem("communities", Data(x=x, edge_index=edge_index), 0, {})


def trainer(folder: Path, model: str, epochs: int, **options: object) -> Trainer:
    settings = {
        "dataset": "communities",
        "model": model,
        "epochs": epochs,
        "num_layers": 2 if model == "gcn" else 4,
    }
    config = make_config({**settings, "hidden_channels": 16, "options": options})
    run = RunFolder(folder)
    problem = communities()
    run.start(config, problem.task)
    return Trainer(config, problem, run)


@pytest.mark.parametrize("model", ["eegnn", "sasgnn", "gcn"])
def test_links_within_communities_are_learned(model: str, tmp_path: Path) -> None:
    summary = trainer(tmp_path, model, 40).fit()
    assert summary["metric"] == "roc_auc"
    assert summary["test"] > 0.8


def test_a_resumed_run_draws_the_same_pairs(tmp_path: Path) -> None:
    whole = trainer(tmp_path / "whole", "eegnn", 6)
    expected = whole.fit()
    part = trainer(tmp_path / "part", "eegnn", 6)
    for _ in range(3):
        part._write(part._epoch(), [(torch.get_rng_state(), None)])
    again = Trainer(part.config, part.problem, part.folder)
    again.resume()
    assert again.fit()["test"] == expected["test"]
    for one, other in zip(again.model.parameters(), whole.model.parameters(), strict=True):
        assert torch.equal(one, other)


def test_each_epoch_predicts_other_links_which_carry_no_messages() -> None:
    batches, generator = Batches(communities(), 32), torch.Generator().manual_seed(0)
    seen = []
    for _ in range(2):
        (batch,) = batches.training(generator)
        assert batch.adj.pairs is not None
        links = batch.adj.pairs[:, batch.labels[:, 0] == 1].T.tolist()
        edges = batch.adj.edge_index.T.tolist()
        assert not any([u, v] in edges or [v, u] in edges for u, v in links)
        seen.append(links)
    assert seen[0] != seen[1]
