from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch_geometric.data import Data

from eegnn.train.config import make_config, parse_overrides
from eegnn.train.loop import TrainingError
from eegnn.train.models import build_model
from tests.train.problems import (
    graph_problem,
    new_run,
    node_problem,
    small_config,
)


def test_outputs_that_are_not_finite_stop_training_with_a_hint(tmp_path: Path) -> None:
    trainer = new_run(tmp_path, node_problem(metric="roc_auc"), model="gcn", lr=1e20)
    with pytest.raises(TrainingError, match="smaller lr"):  # sklearn: Input contains NaN.
        trainer.fit()


def test_outputs_that_are_not_finite_have_no_score(tmp_path: Path) -> None:
    problem = node_problem(metric="accuracy")
    trainer = new_run(tmp_path, problem, model="gcn", lr=1e20, epochs=1)
    with pytest.raises(TrainingError):  # ends with val 0.5 and test 0.9 from NaN outputs
        trainer.fit()


def test_edge_features_are_not_given_to_models_that_take_none(tmp_path: Path) -> None:
    assert new_run(tmp_path, node_problem(edge_dim=2), model="gcn").fit()["epochs"] == 5


def test_a_line_holds_the_learning_rate_of_its_epoch(tmp_path: Path) -> None:
    trainer = new_run(tmp_path, node_problem(), epochs=3, lr=0.04, schedule="cosine")
    trainer.fit()
    rates = [line["lr"] for line in trainer.folder.metrics()]
    assert rates == pytest.approx([0.04, 0.04, 0.02])


@pytest.mark.parametrize("pairs", [["options=3"], ["options=3", "options.nu0=1"], ["options=[]"]])
def test_options_that_are_no_table_are_named(pairs: list[str]) -> None:
    with pytest.raises(ValueError, match="options"):
        make_config({"dataset": "x"}, parse_overrides(pairs))


@pytest.mark.parametrize(
    "pair", ["lr=Infinity", "weight_decay=Infinity", "cost_weight=Infinity", "epochs=true"]
)
def test_infinite_numbers_and_booleans_as_numbers_are_refused(pair: str) -> None:
    with pytest.raises(ValueError, match=pair.partition("=")[0]):
        make_config({"dataset": "x"}, parse_overrides([pair]))


@pytest.mark.parametrize(
    "options",
    [
        {"in_channels": 3},
        {"out_channels": 7},
        {"level": "graph"},
        {"task": "regression"},
        {"edge_dim": 3},
        {"hidden_channels": 16},
        {"num_layers": 2},
    ],
)
def test_what_the_problem_or_a_setting_decides_is_no_option(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"options.{next(iter(options))} is no option"):
        build_model(small_config(options=options), node_problem())


def test_a_graph_without_nodes_is_scored_too(tmp_path: Path) -> None:
    problem = graph_problem()
    made = list(problem.graphs)
    made[int(problem.val[-1])] = Data(
        x=torch.zeros(0, 2), edge_index=torch.zeros(2, 0, dtype=torch.int64), y=torch.tensor([0])
    )
    assert math.isfinite(new_run(tmp_path, replace(problem, graphs=made)).fit()["val"])
