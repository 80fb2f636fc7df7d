from __future__ import annotations

import json
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

import eegnn.io
from eegnn import EEGNN, SASGNN, EarlyExit, load, save
from eegnn.nn.model import GraphModel

EDGE_INDEX = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
X = torch.randn(4, 3, generator=torch.Generator().manual_seed(0))

MODELS: dict[str, Callable[[], GraphModel]] = {
    "EEGNN": lambda: EEGNN(3, 8, 2, 5),
    "EEGNN, all unlike the defaults": lambda: EEGNN(
        3, 8, 2, 4, pool="max", task="multilabel", objective="sampled", after_exit="freeze",
        step_size="mean", hard=True, confidence="sas", temperature="mlp", head_layers=2,
        head_channels=5, head_norm=False, continue_bias=1, head_scale=0.5, nu0=0.0,
        activation="tanh", inner_activation="identity", storage="paper", conv_dropout=0.1,
        conv_norm="layer", dropout=0.2, decoder_layers=2, decoder_bias=True,
    ),
    "EEGNN, one channel": lambda: EEGNN(3, 1, 1, 1),
    "SASGNN": lambda: SASGNN(3, 8, 2, 5),
    "SASGNN, own weights": lambda: SASGNN(3, 8, 2, 3, 0.25, shared=False, storage="paper"),
    "SASGNN, batch norm": lambda: SASGNN(3, 8, 2, 3, conv_norm="batch"),
}  # fmt: skip


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.safetensors"


@pytest.fixture
def saved(path: Path) -> Path:
    torch.manual_seed(0)
    save(EEGNN(3, 8, 2, 5), path)
    return path


def description(path: Path) -> Path:
    return path.with_suffix(".json")


def rewrite(path: Path, **changes: Any) -> None:
    """Change fields of the description, or of its `config` if they stand there."""
    about = json.loads(description(path).read_text())
    for key, value in changes.items():
        (about if key in about else about["config"])[key] = value
    description(path).write_text(json.dumps(about))


# round trips


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("name", list(MODELS))
def test_a_model_comes_back_bit_for_bit(name: str, dtype: torch.dtype, path: Path) -> None:
    model = MODELS[name]().to(dtype)
    save(model, path)
    again = load(path)
    assert type(again) is type(model)
    assert again.config == model.config
    assert not again.training
    assert model.training  # saving left the original's mode alone
    state = again.state_dict()
    assert state.keys() == model.state_dict().keys()
    for key, value in model.state_dict().items():
        assert state[key].dtype == value.dtype
        assert torch.equal(state[key], value)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", list(MODELS))
def test_a_loaded_model_predicts_the_same_bits(name: str, dtype: torch.dtype, path: Path) -> None:
    model = MODELS[name]().to(dtype)
    save(model, path)
    out, exits = model.predict(X.to(dtype), EDGE_INDEX)
    out_again, exits_again = load(path).predict(X.to(dtype), EDGE_INDEX)
    assert out_again.dtype == dtype
    assert torch.equal(out_again, out)
    assert torch.equal(exits_again.layer, exits.layer)


def test_a_model_without_features_comes_back(path: Path) -> None:
    model = EEGNN(0, 4, 2, 3)
    save(model, path)
    assert torch.equal(load(path)(None, EDGE_INDEX), model.eval()(None, EDGE_INDEX))


def test_a_loaded_model_can_be_trained(saved: Path) -> None:
    model = load(saved).train()
    model(X, EDGE_INDEX).sum().backward()
    assert all(p.requires_grad and p.grad is not None for p in model.parameters())


def test_a_model_is_two_files(saved: Path) -> None:
    assert sorted(p.name for p in saved.parent.iterdir()) == ["model.json", "model.safetensors"]
    about = json.loads(description(saved).read_text())
    assert about["model"] == "EEGNN"
    assert about["config"]["hidden_channels"] == 8


@pytest.mark.parametrize("kind", [str, Path])
def test_missing_folders_are_made(kind: Callable[[Path], Any], tmp_path: Path) -> None:
    target = kind(tmp_path / "a" / "b" / "model.safetensors")
    save(SASGNN(3, 4, 2), target)
    assert isinstance(load(target), SASGNN)


def test_saving_again_replaces_the_old_model(saved: Path) -> None:
    other = SASGNN(3, 4, 2)
    save(other, saved)
    again = load(saved)
    assert isinstance(again, SASGNN)
    assert torch.equal(again.encoder.weight, other.encoder.weight)


def test_loading_draws_nothing_that_matters(saved: Path) -> None:
    first, second = load(saved), load(saved)
    for a, b in zip(first.parameters(), second.parameters(), strict=True):
        assert torch.equal(a, b)


# what is refused before anything is written


@pytest.mark.parametrize("name", ["model", "model.pt", "model.safetensors.bak", "model.json"])
def test_another_suffix_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"path must end in \.safetensors, got .*" + name):
        save(SASGNN(3, 4, 2), tmp_path / name)
    with pytest.raises(ValueError, match=r"path must end in \.safetensors"):
        load(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


class MyModel(SASGNN):
    pass


@pytest.mark.parametrize(
    "model",
    [
        torch.nn.Linear(2, 2),
        MyModel(3, 4, 2),
        EarlyExit(torch.nn.Identity(), torch.nn.Identity(), torch.nn.Identity(), 3),
    ],
    ids=lambda model: type(model).__name__,
)
def test_other_models_are_refused(model: Any, path: Path) -> None:
    with pytest.raises(TypeError, match=f"model must be one of .*, got {type(model).__name__}"):
        save(model, path)
    assert list(path.parent.iterdir()) == []


# nothing executable


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


# damage


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
        ({"version": 2}, "model.json has version 2; this eegnn reads version 1"),
        ({"version": None}, "model.json has version None"),
        ({"version": "1"}, "model.json has version '1'"),
        ({"model": "GCN"}, "model.json is damaged: it names the model 'GCN'"),
        ({"model": None}, "model.json is damaged: it names the model None"),
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


@pytest.mark.parametrize("change", [{"hidden_channels": 9}, {"decoder_bias": True}])
def test_weights_of_a_model_that_has_changed_since_are_refused(
    change: dict[str, Any], saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(eegnn.io.MODELS, "EEGNN", lambda **config: EEGNN(**{**config, **change}))
    with pytest.raises(ValueError, match=r"model\.safetensors was written by another version"):
        load(saved)


@pytest.mark.parametrize("change", [{"colour": "red"}, {"objective": "best"}])
def test_a_config_that_is_not_known_any_more_is_refused(
    change: dict[str, Any], saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(eegnn.io.MODELS, "EEGNN", lambda **config: EEGNN(**{**config, **change}))
    with pytest.raises(ValueError, match=r"model\.json is damaged: "):
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


def test_files_get_the_usual_permissions(saved: Path) -> None:
    usual = saved.with_name("usual")
    usual.write_text("")
    assert saved.stat().st_mode == usual.stat().st_mode


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


# atomic writes


def fail(*args: Any, **kwargs: Any) -> None:
    raise OSError("disk full")


@pytest.mark.parametrize("function", ["replace", "fsync"])
def test_a_failing_write_leaves_the_old_files_and_no_others(
    function: str, saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {p.name: p.read_bytes() for p in saved.parent.iterdir()}
    monkeypatch.setattr(os, function, fail)
    with pytest.raises(OSError, match="disk full"):
        save(EEGNN(3, 8, 2, 7), saved)
    assert {p.name: p.read_bytes() for p in saved.parent.iterdir()} == before
    monkeypatch.undo()
    assert load(saved).num_layers == 5


def test_an_interrupted_write_leaves_no_temporary_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*args: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        eegnn.io.write_atomically(tmp_path / "file", b"content")
    assert list(tmp_path.iterdir()) == []


def test_content_is_whole_before_it_takes_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[bytes] = []
    replace = os.replace

    def watch(source: str, target: Path) -> None:
        seen.append(Path(source).read_bytes())
        assert Path(source).parent == target.parent  # a rename is atomic within a file system
        replace(source, target)

    monkeypatch.setattr(os, "replace", watch)
    eegnn.io.write_atomically(tmp_path / "file", b"content")
    assert seen == [b"content"]
    assert (tmp_path / "file").read_bytes() == b"content"
