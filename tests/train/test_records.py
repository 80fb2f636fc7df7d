from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from eegnn.train import start
from eegnn.train.recipes import read_recipe
from eegnn.train.run import RunFolder
from eegnn.train.start import train
from tests.train.problems import NOISY, Killed, killed_after, node_problem, small_config


def test_resuming_with_another_configuration_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(start, "prepare", lambda config, root: node_problem())
    with pytest.raises(Killed):
        train(small_config(**NOISY), tmp_path / "run", on_epoch=killed_after(2))
    with pytest.raises(ValueError, match="another configuration"):
        train(small_config(seed=4, **NOISY), tmp_path / "run", resume=True)


def test_resuming_what_was_never_started_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(start, "prepare", lambda config, root: node_problem())
    with pytest.raises(FileNotFoundError, match="holds no run"):
        train(small_config(), tmp_path / "run", resume=True)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("content", [3, [1], "ab", None])
def test_a_configuration_of_the_wrong_kind_is_refused_by_name(content: Any, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"config": content}))
    with pytest.raises(ValueError, match=r"config\.json"):
        RunFolder(tmp_path).config()
    with pytest.raises(ValueError, match=r"config\.json"):
        read_recipe(tmp_path / "config.json")


def test_a_recipe_that_is_not_text_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match=r"a\.toml"):
        read_recipe(tmp_path / "a.toml")


@pytest.mark.parametrize("name", ["summary.json", "metrics.jsonl"])
def test_damaged_records_are_refused_by_name(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text('{"epoch"\n')
    with pytest.raises(ValueError, match=re.escape(name)):
        getattr(RunFolder(tmp_path), name.split(".")[0])()
