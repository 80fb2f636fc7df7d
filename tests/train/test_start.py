from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from eegnn.data.minesweeper import minesweeper
from eegnn.data.npz import write_npz
from eegnn.data.problem import Problem
from eegnn.train import recipes, start
from eegnn.train.config import Config, make_config
from eegnn.train.run import RunFolder
from eegnn.train.start import configure, default_folder, train
from tests.train.problems import (
    NOISY,
    Killed,
    killed_after,
    node_problem,
    outcome,
    small_config,
)


@pytest.fixture
def board(tmp_path: Path) -> str:
    path = tmp_path / "board.npz"
    write_npz(path, minesweeper(10))
    return str(path)


@pytest.fixture
def by_hand(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Config, Path | None]]:
    """Training gets the problem of the tests; what was asked for is kept."""
    asked: list[tuple[Config, Path | None]] = []

    def prepare(config: Config, root: Path | None) -> Problem:
        asked.append((config, root))
        return node_problem()

    monkeypatch.setattr(start, "prepare", prepare)
    return asked


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of recipes with one in it."""
    monkeypatch.setattr(recipes, "_PLACES", (tmp_path,))
    (tmp_path / "cora").mkdir()
    (tmp_path / "cora" / "gcn.toml").write_text("lr = 0.5\nepochs = 7\n[options]\ndropout = 0.5\n")
    return tmp_path


def test_settings_win_over_the_recipe_and_the_recipe_over_defaults(tmp_path: Path) -> None:
    recipe = tmp_path / "mine.toml"
    recipe.write_text("lr = 0.5\nepochs = 7\noptions = { nu0 = 0.3, dropout = 0.1 }\n")
    config = configure("texas", None, recipe, {"epochs": 9, "options": {"dropout": 0.2}})
    assert (config.lr, config.epochs, config.model) == (0.5, 9, "eegnn")
    assert config.options == {"nu0": 0.3, "dropout": 0.2}


def test_the_recipe_that_comes_with_the_names_is_used() -> None:
    config = configure("tolokers", "sasgnn", None, {})
    assert config.standardize
    assert config.options["step_size"] == 0.5


def test_the_folder_is_named_after_the_run() -> None:
    config = make_config({"dataset": "/data/mine.npz", "model": "gcn", "split": 2, "seed": 5})
    assert default_folder(config) == Path("runs/mine-gcn-split2-seed5")


def test_a_finished_run_is_not_trained_again(board: str, tmp_path: Path) -> None:
    config = make_config({"dataset": board, "epochs": 1, "num_layers": 2})
    first = train(config, tmp_path / "run")
    again = train(
        config, tmp_path / "run", resume=True, on_epoch=lambda line: pytest.fail("trained")
    )
    assert again == first


def test_without_a_recipe_defaults_hold(shelf: Path) -> None:
    assert configure("cora", None, None, {}) == make_config({"dataset": "cora"})
    expected = make_config({"dataset": "texas", "model": "gcn"})
    assert configure("texas", "gcn", None, {}) == expected


def test_sizes_of_a_data_set_share_a_recipe(shelf: Path) -> None:
    config = configure("cora@0.1", "gcn", None, {})
    assert (config.dataset, config.lr) == ("cora@0.1", 0.5)


def test_a_recipe_may_name_data_set_and_model(shelf: Path) -> None:
    mine = shelf / "mine.toml"
    mine.write_text('dataset = "cora"\nmodel = "gcn"\nlr = 0.25\n')
    config = configure(None, None, mine, {})
    assert (config.dataset, config.model, config.lr, config.epochs) == ("cora", "gcn", 0.25, 1000)
    assert configure("texas", "sasgnn", mine, {}).dataset == "texas"


def test_training_writes_a_run_and_returns_its_summary(by_hand: Any, tmp_path: Path) -> None:
    config = small_config()
    lines: list[dict[str, Any]] = []
    summary = train(config, tmp_path / "run", root=Path("data"), on_epoch=lines.append)
    assert by_hand == [(config, Path("data"))]
    assert RunFolder(tmp_path / "run").summary() == summary
    assert RunFolder(tmp_path / "run").config() == config
    assert RunFolder(tmp_path / "run").metrics() == lines


def test_a_second_run_in_the_same_folder_is_refused(by_hand: Any, tmp_path: Path) -> None:
    train(small_config(), tmp_path / "run")
    before = outcome(tmp_path / "run")
    with pytest.raises(FileExistsError, match="--resume"):
        train(small_config(seed=1), tmp_path / "run")
    assert outcome(tmp_path / "run") == before


def test_a_stopped_run_goes_on(by_hand: Any, tmp_path: Path) -> None:
    config = small_config(**NOISY)
    train(config, tmp_path / "unbroken")
    with pytest.raises(Killed):
        train(config, tmp_path / "run", on_epoch=killed_after(3))
    train(config, tmp_path / "run", resume=True)
    assert outcome(tmp_path / "run") == outcome(tmp_path / "unbroken")


def test_a_wrong_setting_leaves_no_folder(by_hand: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="loss='mse' is for regression"):
        train(small_config(loss="mse"), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_resuming_another_run_than_the_one_wanted_is_refused(by_hand: Any, tmp_path: Path) -> None:
    with pytest.raises(Killed):
        train(small_config(**NOISY), tmp_path / "run", on_epoch=killed_after(2))
    with pytest.raises(ValueError, match="seed=0, not 4"):
        train(small_config(seed=4, **NOISY), tmp_path / "run", resume=True)


def test_resuming_where_there_is_no_run_starts_one(by_hand: Any, tmp_path: Path) -> None:
    train(small_config(), tmp_path / "new", resume=True)
    train(small_config(), tmp_path / "run")
    assert outcome(tmp_path / "new") == outcome(tmp_path / "run")


@pytest.mark.parametrize("resume", [False, True])
def test_of_two_processes_one_trains_in_a_folder(
    resume: bool, by_hand: list[Any], tmp_path: Path
) -> None:
    config, folder = small_config(epochs=2), tmp_path / "run"
    with RunFolder(folder).owned(), pytest.raises(RuntimeError, match="another process is train"):
        train(config, folder, resume)
    assert list(folder.iterdir()) == []
    assert train(config, folder, resume)["epochs"] == 2


def test_two_commands_on_one_folder_leave_each_epoch_once(board: str, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    words = ["train", board, "--epochs", "40", "--out", str(folder), "--resume"]
    command = [sys.executable, "-m", "eegnn", *words]
    both = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    errors = [process.communicate(timeout=120)[1] for process in both]
    for process, error in zip(both, errors, strict=True):
        assert process.returncode == 0 or "another process is training" in error, error
    assert 0 in [process.returncode for process in both]
    epochs = [json.loads(line)["epoch"] for line in (folder / "metrics.jsonl").open()]
    assert epochs == list(range(1, 41))
