from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from eegnn.train.run import RunFolder
from tests.train import test_resume_damage
from tests.train.problems import node_problem, resumed_run
from tests.train.test_resume_damage import cut, flip, refused_by_name_or_same

run, unbroken, stopped = (
    test_resume_damage.run,
    test_resume_damage.unbroken,
    test_resume_damage.stopped,
)


@pytest.mark.parametrize("seed", range(15))
def test_a_state_that_was_cut_is_refused(seed: int, run: Path, unbroken: Any) -> None:
    cut(run / "state.pt", seed)
    assert refused_by_name_or_same(run, run / "state.pt", unbroken)


@pytest.mark.parametrize("seed", range(30))
def test_a_state_with_a_flipped_bit_is_refused_or_harmless(
    seed: int, run: Path, unbroken: Any
) -> None:
    flip(run / "state.pt", seed)
    refused_by_name_or_same(run, run / "state.pt", unbroken)


def test_a_state_that_is_no_dictionary_is_refused_by_name(run: Path) -> None:
    torch.save([1, 2], run / "state.pt")
    with pytest.raises(ValueError, match=r"state\.pt"):
        RunFolder(run).state()


@pytest.mark.parametrize("seed", range(30))
def test_a_configuration_with_a_flipped_bit_is_refused_or_harmless(
    seed: int, run: Path, unbroken: Any
) -> None:
    flip(run / "config.json", seed)
    refused_by_name_or_same(run, run / "config.json", unbroken)


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        ('"epochs": 4', '"epochs": 5'),
        ('"dropout": 0.3', '"dropout": 0.2'),
        ('"seed": 0', '"seed": 1'),
    ],
)
def test_a_digit_flipped_in_the_configuration_is_refused_or_harmless(
    good: str, bad: str, run: Path, unbroken: Any
) -> None:
    file = run / "config.json"
    text = file.read_text()
    assert good in text
    file.write_text(text.replace(good, bad))
    refused_by_name_or_same(run, file, unbroken)


def test_leftovers_of_killed_writes_are_removed(run: Path) -> None:
    (run / ".state.pt.0123456789abcdef").write_bytes(b"half a fi")
    resumed_run(run, node_problem()).fit()
    assert [path.name for path in run.iterdir() if path.name.startswith(".")] == []
