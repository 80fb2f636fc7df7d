from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import pytest

from eegnn.data.echo import EchoTask
from eegnn.data.registry import DATASETS
from eegnn.data.transfer import TransferGraph
from eegnn.io import MODELS
from eegnn.train import recipes
from eegnn.train.config import make_config
from eegnn.train.models import NAMES
from eegnn.train.recipes import find_recipe, read_recipe, recipe_folder
from eegnn.train.run import RunFolder

SHIPPED = sorted(recipe_folder().rglob("*.toml"))
GENERATED = [f"echo-{task}" for task in get_args(EchoTask)] + [
    f"transfer-{kind}-{distance}" for kind in get_args(TransferGraph) for distance in (3, 5, 10, 50)
]


def test_a_recipe_in_toml_is_read(tmp_path: Path) -> None:
    path = tmp_path / "eegnn.toml"
    path.write_text('lr = 0.003\nschedule = "cosine"\n[options]\ndropout = 0.2\n')
    assert read_recipe(path) == {"lr": 0.003, "schedule": "cosine", "options": {"dropout": 0.2}}


def test_the_configuration_of_a_run_is_itself_a_recipe(tmp_path: Path) -> None:
    config = make_config({"dataset": "cora", "patience": 3, "options": {"nu0": 0.5}})
    RunFolder(tmp_path / "run").start(config, "classification")
    assert make_config(read_recipe(tmp_path / "run" / "config.json")) == config


def test_a_recipe_in_json_needs_no_wrapping(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text('{"lr": 0.1}')
    assert read_recipe(path) == {"lr": 0.1}


@pytest.mark.parametrize(
    ("name", "text"),
    [("a.toml", "lr = "), ("a.toml", "= 3"), ("a.json", '{"lr": 0.1'), ("a.json", "")],
)
def test_a_damaged_recipe_is_named(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match=rf"{name} is not a recipe"):
        read_recipe(tmp_path / name)


@pytest.mark.parametrize("text", ["[1, 2]", "3", '"lr"', "null"])
def test_json_that_is_no_table_is_named(text: str, tmp_path: Path) -> None:
    (tmp_path / "list.json").write_text(text)
    with pytest.raises(ValueError, match=r"list\.json is not a recipe"):
        read_recipe(tmp_path / "list.json")


@pytest.mark.parametrize("make", [lambda path: None, Path.mkdir], ids=["absent", "folder"])
def test_a_missing_recipe_is_named(make: object, tmp_path: Path) -> None:
    assert callable(make)
    path = tmp_path / "none.toml"
    make(path)
    with pytest.raises(FileNotFoundError, match=r"none\.toml"):
        read_recipe(path)


def test_a_recipe_is_found_by_data_set_and_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recipes, "_PLACES", (tmp_path / "not here", tmp_path))
    (tmp_path / "cora").mkdir()
    (tmp_path / "cora" / "gcn.toml").write_text("lr = 0.1\n")
    assert find_recipe("cora", "gcn") == tmp_path / "cora" / "gcn.toml"
    assert find_recipe("cora", "eegnn") is None
    assert find_recipe("texas", "gcn") is None


def test_recipes_that_were_not_installed_are_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recipes, "_PLACES", (tmp_path / "not here",))
    with pytest.raises(FileNotFoundError, match="recipes were not installed"):
        recipe_folder()


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_shipped_recipe_is_valid_for_its_model(path: Path) -> None:
    content = read_recipe(path)
    config = make_config({"dataset": path.parent.name, "model": path.stem}, content)
    assert (config.dataset, config.model) == (path.parent.name, path.stem)
    assert config.model in NAMES
    known = MODELS[NAMES[config.model]].defaults()
    assert config.options.keys() <= known.keys()


#: Those whose links are predicted are ours.
PAPERS = [name for name in DATASETS if not name.endswith("-link")]


@pytest.mark.parametrize("model", ["sasgnn", "eegnn"])
@pytest.mark.parametrize("dataset", [*PAPERS, *GENERATED])
def test_every_data_set_of_the_paper_has_a_recipe(dataset: str, model: str) -> None:
    path = find_recipe(dataset, model)
    assert path is not None
    assert path.read_text().startswith("# The paper")


@pytest.mark.parametrize("path", [p for p in SHIPPED if p.stem == "eegnn"], ids=str)
def test_every_recipe_of_eegnn_clips_gradients(path: Path) -> None:
    assert read_recipe(path)["clip_norm"] == 1.0


def test_every_recipe_is_for_a_data_set() -> None:
    assert {path.parent.name for path in SHIPPED} <= {*DATASETS, *GENERATED}


@pytest.mark.parametrize("content", [3, [1], "ab", None])
def test_a_configuration_of_the_wrong_kind_is_refused_by_name(content: Any, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"config": content}))
    with pytest.raises(ValueError, match=r"config\.json"):
        read_recipe(tmp_path / "config.json")


def test_a_recipe_that_is_not_text_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match=r"a\.toml"):
        read_recipe(tmp_path / "a.toml")
