"""Recipes: short TOML files with the settings for a data set and a model."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

from eegnn._check import reason

#: Beside the package when installed, at the top of the repository in a checkout.
_PLACES = (
    Path(__file__).parents[1] / "recipes",
    Path(__file__).parents[3] / "recipes",
)


def recipe_folder() -> Path:
    """Return the folder that holds the recipes."""
    for place in _PLACES:
        if place.is_dir():
            return place
    raise FileNotFoundError("the recipes were not installed with eegnn")


def find_recipe(dataset: str, model: str) -> Path | None:
    """Return the file ``recipes/DATASET/MODEL.toml``, or ``None`` where there is none."""
    path = recipe_folder() / dataset / f"{model}.toml"
    return path if path.is_file() else None


def read_recipe(path: Path) -> dict[str, Any]:
    """Read a recipe: TOML, or the ``config.json`` of a run."""
    if not path.is_file():
        raise FileNotFoundError(f"there is no recipe {path}")
    try:
        text = path.read_text(encoding="utf-8")
        content = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not a recipe: {reason(error)}") from error
    settings = content.get("config", content) if isinstance(content, dict) else content
    if not isinstance(settings, dict):
        raise ValueError(f"{path} is not a recipe: it must be a table of settings")
    return settings
