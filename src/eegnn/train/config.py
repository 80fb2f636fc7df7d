"""Everything that decides a run, in one small typed record."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from eegnn._arguments import MOST
from eegnn._check import shown
from eegnn._json import first_error


class Config(BaseModel):
    """What `eegnn train` needs to know. A recipe states only what differs from these defaults.

    ``options`` are further arguments of the model's constructor.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    dataset: str
    model: str = "eegnn"
    split: int = Field(default=0, ge=0)
    seed: int = Field(default=0, ge=0)

    hidden_channels: int = Field(default=32, ge=1, le=MOST["channels"])
    num_layers: int = Field(default=21, ge=1, le=MOST["layers"])
    options: dict[str, Any] = {}

    epochs: int = Field(default=1000, ge=1)
    patience: int | None = Field(
        default=None, ge=1, description="epochs without a better validation"
    )
    optimizer: Literal["adam", "adamw"] = "adam"
    lr: float = Field(default=0.01, gt=0)
    weight_decay: float = Field(default=0.0, ge=0)
    clip_norm: float | None = Field(default=None, gt=0)
    schedule: Literal["constant", "cosine"] = Field(
        default="constant", description="cosine: after a warm-up over 5 % of the epochs"
    )
    batch_size: int = Field(
        default=32, ge=1, description="graphs a batch; one graph is cut by blocks alone"
    )
    blocks: int = Field(
        default=0, ge=0, description="cut one graph into so many, a batch each; 0: take it whole"
    )
    loss: Literal["auto", "mse", "l1", "log10_mse"] = "auto"
    cost_weight: float = Field(default=0.0, ge=0, description="weight of exits.cost in the loss")
    standardize: bool = Field(default=False, description="features to mean 0 and variance 1")
    encoding: str = Field(
        default="none", description="none, rwse or lappe with 16 columns, or as rwse:8 with 8"
    )

    @field_validator("encoding")
    @classmethod
    def _encoding(cls, encoding: str) -> str:
        parse_encoding(encoding)
        return encoding


def parse_encoding(encoding: str) -> tuple[Literal["none", "rwse", "lappe"], int]:
    """Return the kind of encoding and its number of columns, from ``"rwse"`` or ``"rwse:8"``."""
    if encoding == "none":
        return "none", 0
    found = re.fullmatch(r"(rwse|lappe)(:[1-9][0-9]{0,3})?", encoding)
    if found is None:
        raise ValueError("must be none, rwse, lappe, or one with its number of columns as rwse:8")
    return ("rwse" if found[1] == "rwse" else "lappe"), int((found[2] or ":16")[1:])


def make_config(*layers: dict[str, Any]) -> Config:
    """Merge dictionaries, later ones winning (``options`` entry by entry), and check the result.

    Raises:
        ValueError: one sentence that names the key and what is wrong with it.
    """
    merged: dict[str, Any] = {}
    for layer in layers:
        if not isinstance(layer, dict):
            raise ValueError(f"settings must be a table, got {shown(layer)}")
        if not isinstance(layer.get("options", {}), dict):
            raise ValueError(f"options must be a table, got {shown(layer['options'])}")
        options = {**merged.get("options", {}), **layer.get("options", {})}
        merged = {**merged, **layer, "options": options}
    try:
        return Config(**merged)
    except ValidationError as error:
        key, message, seen = first_error(error)
        kind = error.errors()[0]["type"]
        if kind == "extra_forbidden":
            known = ", ".join(Config.model_fields)
            raise ValueError(
                f"{shown(key)} is no setting; known are {known}, options.NAME"
            ) from None
        given = f", got {seen}" if kind != "missing" else ""
        raise ValueError(f"{key}: {message}{given}") from None


def parse_overrides(pairs: Sequence[str] | None, **flags: Any) -> dict[str, Any]:
    """Return what the command line changes, as a dictionary.

    Args:
        pairs: such as ``["lr=0.003", "options.nu0=0"]``; values are JSON, or else text.
        **flags: settings with a flag of their own; ``None`` for one that was not given.
    """
    settings = {name: value for name, value in flags.items() if value is not None}
    for pair in pairs or ():
        key, equals, text = pair.partition("=")
        if not equals or not key:
            raise ValueError(f"--set needs key=value, got {shown(pair)}")
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            value = text
        if key.startswith("options."):
            options = settings.setdefault("options", {})
            if not isinstance(options, dict):
                raise ValueError(f"options must be a table, got {shown(options)}")
            options[key.removeprefix("options.")] = value
        else:
            settings[key] = value
    return settings
