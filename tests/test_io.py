"""Models make the round trip through files."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

from eegnn import EEGNN, SASGNN, load, save
from eegnn.nn.model import GraphModel
from tests import saved_models
from tests.saved_models import description

path = pytest.fixture(saved_models.path)
saved = pytest.fixture(saved_models.saved)

EDGE_INDEX = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
X = torch.randn(4, 3, generator=torch.Generator().manual_seed(0))

MODELS: dict[str, Callable[[], GraphModel]] = {
    "EEGNN": lambda: EEGNN(3, 8, 2, 5),
    "EEGNN, all unlike the defaults": lambda: EEGNN(
        3, 8, 2, 4, pool="max", after_exit="freeze", step_size="mean", confidence="sas",
        head_layers=2, head_channels=5, continue_bias=None, nu0=0.0, recompute=True,
        weight_scale=0.5, storage="paper", dropout=0.2, decoder_layers=2,
    ),
    "EEGNN, one channel": lambda: EEGNN(3, 1, 1, 1),
    "SASGNN": lambda: SASGNN(3, 8, 2, 5),
    "SASGNN, own weights": lambda: SASGNN(3, 8, 2, step_size=0.2, shared=False, storage="paper"),
    "SASGNN, batch norm": lambda: SASGNN(3, 8, 2, 3, conv_norm="batch"),
}  # fmt: skip


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


def test_a_model_is_loaded_onto_the_device_that_is_named(saved: Path) -> None:
    devices = {p.device.type for p in load(saved, map_location="meta").parameters()}
    assert devices == {"meta"}


@dataclass(eq=False, repr=False)
class WithBias(EEGNN):
    """What someone else derives: an argument and a weight of its own."""

    shift: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.own = torch.nn.Parameter(torch.full((self.out_channels,), self.shift))

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return super().forward(*args, **kwargs) + self.own


def test_a_derived_class_comes_back_where_it_is_given(path: Path) -> None:
    model = WithBias(3, 8, 2, 5, shift=0.5).eval()
    save(model, path)
    again = load(path, cls=WithBias)
    assert type(again) is WithBias
    assert again.config["shift"] == 0.5
    assert torch.equal(again(X, EDGE_INDEX), model(X, EDGE_INDEX))


def test_a_derived_class_is_not_looked_for(path: Path) -> None:
    save(WithBias(3, 8, 2, 5), path)
    with pytest.raises(ValueError, match=r"names the model 'WithBias', .* load\(path, cls="):
        load(path)
    with pytest.raises(ValueError, match=r"names the model 'WithBias', known are SASGNN"):
        load(path, cls=SASGNN)


def test_a_model_that_could_not_be_told_from_ours_is_not_saved(path: Path) -> None:
    namesake = type("EEGNN", (WithBias,), {})(3, 8, 2, 5)
    with pytest.raises(TypeError, match=r"named as eegnn's EEGNN"):
        save(namesake, path)
    assert not path.exists()
