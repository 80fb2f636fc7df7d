"""A run whose files were damaged is refused by name, or resumed to the same result."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from eegnn.train.run import RunFolder
from tests.train.problems import (
    NOISY,
    Killed,
    killed_after,
    new_run,
    node_problem,
    outcome,
    resumed_run,
)

SETTINGS: dict[str, Any] = {**NOISY, "lr": 0.05, "epochs": 4}


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    path = tmp_path_factory.mktemp("unbroken") / "run"
    new_run(path, node_problem(), **SETTINGS).fit()
    return outcome(path)


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was stopped after two epochs."""
    path = tmp_path_factory.mktemp("stopped") / "run"
    with pytest.raises(Killed):
        new_run(path, node_problem(), **SETTINGS).fit(killed_after(2))
    return path


@pytest.fixture
def run(stopped: Path, tmp_path: Path) -> Path:
    return shutil.copytree(stopped, tmp_path / "run")


def cut(path: Path, seed: int) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: int(np.random.default_rng(seed).integers(len(content)))])


def flip(path: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    content = bytearray(path.read_bytes())
    content[rng.integers(len(content))] ^= 1 << int(rng.integers(8))
    path.write_bytes(content)


def refused_by_name_or_same(run: Path, file: Path, unbroken: dict[str, Any]) -> bool:
    """Resume; whether it was refused."""
    before = file.read_bytes()
    try:
        resumed_run(run, node_problem()).fit()
    except ValueError as error:
        said = str(error)
    else:
        assert outcome(run) == unbroken
        return False
    assert file.name in said
    assert file.read_bytes() == before
    return True


@pytest.mark.parametrize("seed", range(10))
def test_a_configuration_that_was_cut_is_refused(seed: int, run: Path) -> None:
    cut(run / "config.json", seed)
    with pytest.raises(ValueError, match=r"config\.json is damaged"):
        resumed_run(run, node_problem())


@pytest.mark.parametrize("name", ["metrics.jsonl", "state.pt"])
@pytest.mark.parametrize("seed", range(10))
def test_metrics_and_states_that_were_cut_are_refused(
    name: str, seed: int, run: Path, unbroken: dict[str, Any]
) -> None:
    cut(run / name, seed)
    assert refused_by_name_or_same(run, run / name, unbroken)


def test_metrics_that_are_gone_are_refused(run: Path) -> None:
    (run / "metrics.jsonl").unlink()
    with pytest.raises(ValueError, match=r"metrics\.jsonl is damaged"):
        resumed_run(run, node_problem())


@pytest.mark.parametrize("damage", [cut, flip])
@pytest.mark.parametrize("seed", range(5))
def test_damaged_weights_are_refused_or_replaced_by_better_ones(
    damage: Any, seed: int, run: Path, unbroken: dict[str, Any]
) -> None:
    damage(run / "model.safetensors", seed)
    refused_by_name_or_same(run, run / "model.safetensors", unbroken)


def test_damaged_weights_of_a_finished_run_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "run"
    new_run(path, node_problem(), **SETTINGS).fit()
    cut(path / "model.safetensors", 0)
    trainer = resumed_run(path, node_problem())
    with pytest.raises(ValueError, match=re.escape(str(path / "model.safetensors"))):
        trainer.fit()


def test_without_a_state_the_run_begins_again(run: Path, unbroken: dict[str, Any]) -> None:
    (run / "state.pt").unlink()
    resumed_run(run, node_problem()).fit()
    assert outcome(run) == unbroken


def test_leftovers_of_killed_writes_do_no_harm(run: Path, unbroken: dict[str, Any]) -> None:
    for name in ("state.pt", "model.safetensors", "metrics.jsonl"):
        (run / f".{name}.0123456789abcdef").write_bytes(b"half a fi")
    resumed_run(run, node_problem()).fit()
    assert outcome(run) == unbroken
    assert [path.name for path in run.iterdir() if path.name.startswith(".")] == []


def test_an_empty_or_foreign_file_as_state_is_refused(run: Path) -> None:
    for content in (b"", (run / "model.safetensors").read_bytes()):
        (run / "state.pt").write_bytes(content)
        with pytest.raises(ValueError, match=r"state\.pt is damaged"):
            resumed_run(run, node_problem())


@pytest.mark.parametrize("name", ["state.pt", "config.json"])
@pytest.mark.parametrize("seed", range(30))
def test_a_flipped_bit_is_refused_or_harmless(
    name: str, seed: int, run: Path, unbroken: dict[str, Any]
) -> None:
    flip(run / name, seed)
    refused_by_name_or_same(run, run / name, unbroken)


def test_a_state_that_is_no_dictionary_is_refused_by_name(run: Path) -> None:
    torch.save([1, 2], run / "state.pt")
    with pytest.raises(ValueError, match=r"state\.pt"):
        RunFolder(run).state()


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        ('"epochs": 4', '"epochs": 5'),
        ('"dropout": 0.3', '"dropout": 0.2'),
        ('"seed": 0', '"seed": 1'),
    ],
)
def test_a_digit_flipped_in_the_configuration_is_refused_or_harmless(
    good: str, bad: str, run: Path, unbroken: dict[str, Any]
) -> None:
    file = run / "config.json"
    text = file.read_text()
    assert good in text
    file.write_text(text.replace(good, bad))
    refused_by_name_or_same(run, file, unbroken)
