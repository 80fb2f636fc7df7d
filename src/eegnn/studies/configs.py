"""The configurations of runs: with a recipe, with that of another model, or without one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from eegnn.io import MODELS
from eegnn.train.config import Config, make_config
from eegnn.train.models import NAMES
from eegnn.train.recipes import find_recipe, read_recipe
from eegnn.train.start import configure

#: The runs of a cell.
Runs = tuple[Config, ...]
Settings = Mapping[str, Any]


def model_name(printed: str) -> str:
    """Return the name on the command line of a model as the paper prints it.

    ``sasgnn`` for ``SAS-GNN``, ``ee-gcn`` for ``EE+GCN``.
    """
    return printed.lower().replace("-", "").replace("+", "-")


def whole_dataset(name: str) -> str:
    """Return the name of the whole data set, ``echo-sssp`` for ``echo-sssp@0.1``."""
    return name.partition("@")[0]


def with_recipe(dataset: str, model: str, settings: Settings | None = None) -> Config | None:
    """Return a run with the recipe for these names and further settings; ``None`` without one."""
    if find_recipe(whole_dataset(dataset), model) is None:
        return None
    return configure(dataset, model, None, dict(settings or {}))


def with_recipe_of(
    owner: str, dataset: str, model: str, settings: Settings, source: str | None = None
) -> Config:
    """Return a run with the recipe of another model, without the options that it does not have.

    The recipe is that of ``owner`` for this data set, or for the data set ``source``.
    """
    path = find_recipe(source or dataset, owner)
    if path is None:
        raise ValueError(f"there is no recipe for {owner} on {source or dataset}")
    recipe = read_recipe(path)
    known = _defaults(model)
    options = {key: value for key, value in recipe.get("options", {}).items() if key in known}
    options |= settings.get("options", {})
    return without_recipe(dataset, model, {**recipe, **settings, "options": options})


def without_recipe(dataset: str, model: str, settings: Settings) -> Config:
    """Return a run with these settings alone, though there may be a recipe for these names.

    Options of that recipe are set to the defaults of the model, so that the configuration says it.
    """
    path = find_recipe(whole_dataset(dataset), model)
    usual = {} if path is None else read_recipe(path).get("options", {})
    defaults = _defaults(model)
    options = {key: defaults[key] for key in usual} | settings.get("options", {})
    return make_config({**settings, "dataset": dataset, "model": model, "options": options})


def repeat(config: Config | None, over: Literal["split", "seed"], numbers: Iterable[int]) -> Runs:
    """Return the same run for each split, or seed; none if there is no run to repeat."""
    if config is None:
        return ()
    return tuple(config.model_copy(update={over: number}) for number in numbers)


def _defaults(model: str) -> dict[str, Any]:
    return MODELS[NAMES[model]].defaults()
