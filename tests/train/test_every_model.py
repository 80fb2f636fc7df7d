"""Every model by its name, the way `eegnn train` goes, on data that is generated."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from eegnn.data.minesweeper import minesweeper
from eegnn.data.npz import write_npz
from eegnn.train.start import configure, train
from eegnn.zoo.registry import ENTRIES
from tests.train.problems import graph_problem

SETTINGS = {"epochs": 3, "hidden_channels": 8, "num_layers": 3}
every_name = pytest.mark.parametrize("name", ENTRIES)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("generated")


@every_name
def test_it_trains_on_a_minesweeper_board(name: str, folder: Path, tmp_path: Path) -> None:
    write_npz(folder / "board.npz", minesweeper(10))
    config = configure(str(folder / "board.npz"), name, None, SETTINGS)
    summary = train(config, tmp_path / "run")
    assert (summary["model"], summary["epochs"], summary["metric"]) == (name, 3, "roc_auc")
    assert math.isfinite(summary["test"])


@every_name
def test_it_trains_on_graphs(name: str, folder: Path, tmp_path: Path) -> None:
    write_npz(folder / "rings.npz", graph_problem(60).graphs)
    config = configure(str(folder / "rings.npz"), name, None, SETTINGS)
    summary = train(config, tmp_path / "run")
    assert (summary["model"], summary["epochs"]) == (name, 3)
    assert sum(summary["exits"]["histogram"]) == 12  # a fifth of the graphs, not their nodes
    assert math.isfinite(summary["test"])
