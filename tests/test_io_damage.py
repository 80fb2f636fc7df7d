"""Files that are damaged, foreign, missing or hostile are refused, by name."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

import eegnn.io
from eegnn import EEGNN, SASGNN, load, save
from eegnn.zoo.registry import ENTRIES
from tests import saved_models
from tests.saved_models import description

path = pytest.fixture(saved_models.path)
saved = pytest.fixture(saved_models.saved)


def rewrite(path: Path, **changes: Any) -> None:
    """Change fields of the description, or of its `config` if they stand there."""
    about = json.loads(description(path).read_text())
    for key, value in changes.items():
        (about if key in about else about["config"])[key] = value
    description(path).write_text(json.dumps(about))


class Bomb:
    fired = False

    def __reduce__(self) -> tuple[Any, ...]:
        return setattr, (Bomb, "fired", True)


@pytest.mark.parametrize("which", ["weights", "description"])
@pytest.mark.parametrize("how", ["pickle", "torch"])
def test_pickled_files_are_refused_and_not_run(which: str, how: str, saved: Path) -> None:
    target = saved if which == "weights" else description(saved)
    if how == "pickle":
        target.write_bytes(pickle.dumps(Bomb()))
    else:
        torch.save({"bomb": Bomb()}, target)
    Bomb.fired = False
    with pytest.raises(ValueError, match=target.name):
        load(saved)
    assert not Bomb.fired


@pytest.mark.parametrize("seed", range(12))
def test_truncated_weights_are_refused(seed: int, saved: Path) -> None:
    content = saved.read_bytes()
    cut = int(np.random.default_rng(seed).integers(0, len(content)))
    saved.write_bytes(content[:cut])
    with pytest.raises(ValueError, match=saved.name):
        load(saved)


@pytest.mark.parametrize("cut", [0, 1, 7, 8, 9, -1])
def test_weights_truncated_at_an_edge_are_refused(cut: int, saved: Path) -> None:
    saved.write_bytes(saved.read_bytes()[:cut])
    with pytest.raises(ValueError, match=saved.name):
        load(saved)


@pytest.mark.parametrize("seed", range(8))
def test_a_truncated_description_is_refused(seed: int, saved: Path) -> None:
    content = description(saved).read_bytes().rstrip()
    cut = int(np.random.default_rng(seed).integers(0, len(content)))
    description(saved).write_bytes(content[:cut])
    with pytest.raises(ValueError, match=description(saved).name):
        load(saved)


def test_a_flipped_byte_anywhere_in_the_weights_file_is_found(path: Path) -> None:
    torch.manual_seed(0)
    save(SASGNN(2, 3, 2, 2), path)  # small, so that every byte can have its turn
    content = path.read_bytes()
    for position in range(len(content)):
        damaged = bytearray(content)
        damaged[position] ^= 0xFF
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=path.name):
            load(path)


@pytest.mark.parametrize("bit", range(8))
def test_a_flipped_bit_in_the_numbers_is_found(bit: int, saved: Path) -> None:
    content = bytearray(saved.read_bytes())
    start = 8 + int.from_bytes(content[:8], "little")
    position = int(np.random.default_rng(bit).integers(start, len(content)))
    content[position] ^= 1 << bit
    saved.write_bytes(content)
    with pytest.raises(ValueError, match=rf"{saved.name} is damaged: .*checksum"):
        load(saved)


def test_appended_bytes_are_refused(saved: Path) -> None:
    saved.write_bytes(saved.read_bytes() + b"\0" * 16)
    with pytest.raises(ValueError, match=saved.name):
        load(saved)


@pytest.mark.parametrize("text", ["", "not json", "{", "\0", "\xff"])
def test_a_description_that_is_not_json_is_refused(text: str, saved: Path) -> None:
    description(saved).write_bytes(text.encode("latin-1"))
    with pytest.raises(ValueError, match=r"model\.json is damaged: it is not JSON"):
        load(saved)


@pytest.mark.parametrize("other", [None, 3, "eegnn-model", [], {}, {"format": "other"}])
def test_other_json_is_refused(other: Any, saved: Path) -> None:
    description(saved).write_text(json.dumps(other))
    with pytest.raises(ValueError, match=r"model\.json does not describe an EEGNN model"):
        load(saved)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": 3}, "model.json has version 3; this eegnn reads version 2"),
        ({"version": 1}, "model.json was written by eegnn 0.1, which .*: train the model again"),
        ({"version": None}, "model.json has version None"),
        ({"version": "2"}, "model.json has version '2'"),
        ({"model": "MLP"}, "model.json names the model 'MLP', known are EEGNN, "),
        ({"model": None}, "model.json is damaged: it has no name"),
        ({"config": []}, "model.json is damaged"),
        ({"model": []}, "model.json is damaged"),
        ({"version": True}, "model.json has version True"),
        ({"config": {}}, "do not belong together"),
        ({"colour": "red"}, "do not belong together"),
        ({"num_layers": 99}, "do not belong together"),
        ({"hidden_channels": 10**12}, "do not belong together"),
        ({"model": "SASGNN"}, "do not belong together"),
    ],
    ids=str,
)
def test_a_description_that_does_not_fit_is_refused(
    changes: dict[str, Any], message: str, saved: Path
) -> None:
    rewrite(saved, **changes)
    with pytest.raises(ValueError, match=message):
        load(saved)


@pytest.mark.parametrize("change", [{"hidden_channels": 9}, {"decoder_layers": 2}])
def test_weights_of_a_model_that_has_changed_since_are_refused(
    change: dict[str, Any], saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed = {"EEGNN": lambda **config: EEGNN(**{**config, **change})}
    monkeypatch.setattr(eegnn.io, "MODELS", changed)
    with pytest.raises(ValueError, match=r"model\.safetensors was written by another version"):
        load(saved)


@pytest.mark.parametrize("change", [{"colour": "red"}, {"after_exit": "vanish"}])
def test_a_config_that_is_not_known_any_more_is_refused(
    change: dict[str, Any], saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed = {"EEGNN": lambda **config: EEGNN(**{**config, **change})}
    monkeypatch.setattr(eegnn.io, "MODELS", changed)
    with pytest.raises(ValueError, match=r"model\.json does not fit EEGNN: "):
        load(saved)


def test_deeply_nested_json_is_refused(saved: Path) -> None:
    description(saved).write_text("[" * 100_000)
    with pytest.raises(ValueError, match=r"model\.json is damaged"):
        load(saved)


def test_a_crash_between_the_two_files_is_found(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace, calls = os.replace, []

    def fail_second(source: Any, target: Any) -> None:
        calls.append(target)
        if len(calls) == 2:
            raise OSError("disk full")
        replace(source, target)

    monkeypatch.setattr(os, "replace", fail_second)
    with pytest.raises(OSError, match="disk full"):
        save(EEGNN(3, 8, 2, 7), saved)
    with pytest.raises(ValueError, match="do not belong together"):
        load(saved)


def test_safetensors_of_another_program_are_refused(saved: Path) -> None:
    state = load(saved).state_dict()
    save_file({k: v.contiguous() for k, v in state.items()}, saved)
    with pytest.raises(ValueError, match="does not hold the weights of an EEGNN model"):
        load(saved)


@pytest.mark.parametrize("missing", ["model.safetensors", "model.json"])
def test_a_missing_file_is_named(missing: str, saved: Path) -> None:
    (saved.parent / missing).unlink()
    with pytest.raises(FileNotFoundError, match=f"{missing} does not exist"):
        load(saved)


def test_a_folder_is_not_a_model(saved: Path) -> None:
    saved.unlink()
    saved.mkdir()
    with pytest.raises(FileNotFoundError, match=saved.name):
        load(saved)


def forge(path: Path, tensors: dict[str, Any], **changes: Any) -> None:
    """Write a model with other weights and arguments, whose checksums are right."""
    about = json.loads(description(path).read_text())
    about["config"] |= changes
    sums = {"weights": eegnn.io._checksum(tensors)}
    sums["description"] = eegnn.io._description_checksum(about)
    description(path).write_text(json.dumps(about))
    save_file(tensors, path, {eegnn.io.FORMAT: json.dumps(sums)})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"decoder_layers": 10**9}, "decoder_layers must be at most 1000, got 1000000000"),
        ({"num_layers": 10**9}, "num_layers must be at most 1000"),
        ({"hidden_channels": 10**9}, "hidden_channels must be at most"),
        ({"hidden_channels": 2**20}, "was written by another version .* has 1099"),
        ({"head_channels": "many"}, "head_channels must be an integer, got 'many'"),
        ({"pool": ["mean"]}, "does not fit EEGNN"),
    ],
)
def test_a_forged_model_is_refused_before_it_is_built(
    change: dict[str, Any], message: str, saved: Path
) -> None:
    forge(saved, load(saved).state_dict(), **change)
    with pytest.raises(ValueError, match=message):
        load(saved)


@pytest.mark.parametrize("tensors", [{}, {"encoder.weight": torch.arange(3)}])
def test_weights_that_are_none_are_refused(tensors: dict[str, Any], saved: Path) -> None:
    forge(saved, tensors)
    with pytest.raises(ValueError, match=saved.name):
        load(saved)


def test_integers_as_weights_are_refused(saved: Path) -> None:
    forge(saved, {name: tensor.long() for name, tensor in load(saved).state_dict().items()})
    with pytest.raises(ValueError, match="holds no floating-point numbers"):
        load(saved)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_no_numbers_are_warned_of(value: float, path: Path) -> None:
    model = EEGNN(3, 8, 2, 5)
    with torch.no_grad():
        model.encoder.weight[0, 0] = value
    save(model, path)
    with pytest.warns(UserWarning, match=r"holds NaN or infinite weights in encoder\.weight"):
        load(path)


@pytest.mark.parametrize("name", ENTRIES)
def test_the_weights_of_every_model_are_counted_without_making_them(name: str) -> None:
    cls, sizes = eegnn.io.MODELS[ENTRIES[name].kind], {"in_channels": 3, "hidden_channels": 8}
    config = {**sizes, "out_channels": 2, "num_layers": 3, **ENTRIES[name].options}
    before = torch.get_rng_state()
    count = eegnn.io.num_weights(cls, config)
    assert torch.equal(torch.get_rng_state(), before)  # or a seed would draw other weights
    assert count == sum(tensor.numel() for tensor in cls(**config).state_dict().values())
