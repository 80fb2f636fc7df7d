from __future__ import annotations

import shlex

import pytest

from eegnn.studies.configs import (
    model_name,
    repeat,
    with_recipe,
    with_recipe_of,
    without_recipe,
)
from eegnn.studies.runner import train_command
from eegnn.train.config import Config, parse_overrides
from eegnn.train.start import configure


@pytest.mark.parametrize(("printed", "name"), [("SAS-GNN", "sasgnn"), ("EE+GCN", "ee-gcn")])
def test_printed_names_of_models_are_those_of_the_command_line(printed: str, name: str) -> None:
    assert model_name(printed) == name


def test_runs_with_a_recipe_are_those_of_the_command_line() -> None:
    found = repeat(with_recipe("minesweeper", "sasgnn", {"options": {}}), "split", (0, 7))
    first, last = (configure("minesweeper", "sasgnn", None, {"split": split}) for split in (0, 7))
    assert found == (first, last)
    assert with_recipe("tolokers", "cognn") is None
    assert repeat(None, "split", (0, 7)) == ()


def test_seeds_differ_in_nothing_else() -> None:
    first, second = repeat(Config(dataset="photo"), "seed", (0, 3))
    assert (first.seed, second.seed) == (0, 3)
    assert first.model_copy(update={"seed": 3}) == second


def test_a_borrowed_recipe_leaves_out_what_the_model_does_not_have() -> None:
    config = with_recipe_of("sasgnn", "echo-sssp@0.07", "gin", {"seed": 1}, "echo-sssp")
    assert (config.model, config.seed, config.lr) == ("gin", 1, 0.003)
    assert config.options == {"decoder_layers": 2}
    with pytest.raises(ValueError, match="no recipe for gin on echo-sssp"):
        with_recipe_of("gin", "echo-sssp", "gin", {})


def test_without_its_recipe_a_model_has_its_defaults_and_its_command_says_so() -> None:
    given = {"num_layers": 3, "options": {"dropout": 0.5}}
    config = without_recipe("minesweeper", "tuned-gcn", given)
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
    assert configure("minesweeper", "tuned-gcn", None, {**settings, **numbers}) == config
