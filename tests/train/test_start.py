from pathlib import Path

import pytest

from eegnn.data.minesweeper import minesweeper
from eegnn.data.npz import write_npz
from eegnn.train.config import make_config
from eegnn.train.run import RunFolder
from eegnn.train.start import configure, default_folder, find_run, train


@pytest.fixture
def board(tmp_path: Path) -> str:
    path = tmp_path / "board.npz"
    write_npz(path, minesweeper(10))
    return str(path)


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


@pytest.mark.parametrize("model", ["eegnn", "sasgnn", "gcn"])
def test_every_model_trains_on_a_file(model: str, board: str, tmp_path: Path) -> None:
    config = make_config({"dataset": board, "model": model, "epochs": 2, "num_layers": 3})
    seen: list[int] = []
    summary = train(config, tmp_path / "run", on_epoch=lambda line: seen.append(line["epoch"]))
    assert seen == [1, 2]
    assert summary["model"] == model
    assert 0 <= summary["test"] <= 1
    assert RunFolder(tmp_path / "run").summary() == summary


def test_a_finished_run_is_not_trained_again(board: str, tmp_path: Path) -> None:
    config = make_config({"dataset": board, "epochs": 1, "num_layers": 2})
    first = train(config, tmp_path / "run")
    again = train(
        config, tmp_path / "run", resume=True, on_epoch=lambda line: pytest.fail("trained")
    )
    assert again == first


def test_a_second_run_in_the_same_folder_is_refused(board: str, tmp_path: Path) -> None:
    config = make_config({"dataset": board, "epochs": 1, "num_layers": 2})
    train(config, tmp_path / "run")
    with pytest.raises(FileExistsError, match="--resume"):
        train(config, tmp_path / "run")


def test_resume_takes_what_the_folder_holds_or_starts_anew(board: str, tmp_path: Path) -> None:
    config = make_config({"dataset": board, "epochs": 1, "num_layers": 2})
    assert find_run(config, tmp_path / "run", resume=True) == (config, False)
    assert find_run(config, tmp_path / "run", resume=False) == (config, False)
    train(config, tmp_path / "run")
    assert find_run(config, tmp_path / "run", resume=True) == (config, True)
    assert find_run(None, tmp_path / "run", resume=True) == (config, True)


def test_resuming_another_run_than_the_one_wanted_is_refused(board: str, tmp_path: Path) -> None:
    train(make_config({"dataset": board, "epochs": 1, "num_layers": 2}), tmp_path / "run")
    wanted = make_config({"dataset": board, "epochs": 5, "num_layers": 2})
    with pytest.raises(ValueError, match="epochs=1, not 5"):
        find_run(wanted, tmp_path / "run", resume=True)
