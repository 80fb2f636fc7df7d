from __future__ import annotations

import shlex

import pytest

from eegnn.studies.runner import train_command
from eegnn.studies.study import AUROC, Score
from eegnn.studies.tables import (
    beside,
    each,
    printed,
    with_recipe,
    with_recipe_of,
    without_recipe,
)
from eegnn.train.config import Config, parse_overrides
from eegnn.train.start import configure


def test_a_printed_table_is_read_by_row_and_column() -> None:
    found = printed(("a", "b"), {"x": [(1.0, 0.1), None], "y": [None, (2.0, 0.2)]})
    assert found == {("x", "a"): Score(1.0, 0.1), ("y", "b"): Score(2.0, 0.2)}
    with pytest.raises(ValueError, match="zip"):
        printed(("a", "b"), {"x": [(1.0, 0.1)]})


def test_what_we_have_no_settings_for_gets_no_cell() -> None:
    def runs(row: str, column: str) -> list[Config]:
        return [Config(dataset="minesweeper")] if row == "x" else []

    paper = {("x", "a"): Score(1.0), ("y", "a"): Score(2.0)}
    (cell,) = beside("g", paper, {"a": AUROC}, runs)
    assert (cell.group, cell.row, cell.column, cell.paper) == ("g", "x", "a", Score(1.0))


def test_runs_with_a_recipe_are_those_of_the_command_line() -> None:
    found = with_recipe("minesweeper", "sasgnn", "split", (0, 7), {"options": {}})
    wanted = [configure("minesweeper", "sasgnn", None, {"split": split}) for split in (0, 7)]
    assert found == wanted
    assert with_recipe("tolokers", "cognn", "split", (0,), {}) == []


def test_seeds_differ_in_nothing_else() -> None:
    first, second = each(Config(dataset="photo"), "seed", (0, 3))
    assert (first.seed, second.seed) == (0, 3)
    assert first.model_copy(update={"seed": 3}) == second


def test_a_borrowed_recipe_leaves_out_what_the_model_does_not_have() -> None:
    config = with_recipe_of("echo-sssp@0.07", "gin", "sasgnn", "echo-sssp", {"seed": 1})
    assert (config.model, config.seed, config.lr) == ("gin", 1, 0.003)
    assert config.options == {"decoder_layers": 2}
    with pytest.raises(ValueError, match="no recipe for gin on echo-sssp"):
        with_recipe_of("echo-sssp", "gin", "gin", "echo-sssp", {})


def test_without_its_recipe_a_model_has_its_defaults_and_its_command_says_so() -> None:
    config = without_recipe("minesweeper", "gcn", {"num_layers": 3, "options": {"dropout": 0.5}})
    assert config.options["residual"] is False
    assert config.options["conv_norm"] is None
    assert (config.options["dropout"], config.epochs) == (0.5, Config(dataset="").epochs)
    words = shlex.split(train_command(config))
    settings = parse_overrides([word for word in words if "=" in word])
    numbers = {
        word[2:]: int(words[place + 1])
        for place, word in enumerate(words)
        if word in ("--split", "--seed", "--epochs")
    }
    assert configure("minesweeper", "gcn", None, {**settings, **numbers}) == config
