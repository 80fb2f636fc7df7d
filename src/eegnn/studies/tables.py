"""What tables of the paper have in common: rows of numbers, and runs with the recipes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from eegnn.io import MODELS
from eegnn.studies.study import Cell, Measured, Quantity, Score
from eegnn.train.config import Config, make_config
from eegnn.train.models import NAMES
from eegnn.train.recipes import find_recipe, read_recipe
from eegnn.train.start import configure

#: A number of the paper with its standard deviation; ``None`` where it has none.
Printed = tuple[float, float] | None


def printed(
    columns: Sequence[str], rows: Mapping[str, Sequence[Printed]]
) -> dict[tuple[str, str], Score]:
    """Turn a table of the paper into scores by row and column."""
    return {
        (row, column): Score(*number)
        for row, numbers in rows.items()
        for column, number in zip(columns, numbers, strict=True)
        if number is not None
    }


def beside(
    group: str,
    paper: Mapping[tuple[str, str], Score],
    quantities: Mapping[str, Quantity],
    runs: Callable[[str, str], Sequence[Config]],
) -> list[Cell]:
    """Make a cell for each number of the paper that there are runs for.

    Args:
        group: of the cells.
        paper: its numbers by row and column.
        quantities: by column.
        runs: those of a row and a column; none where we have no settings.
    """
    return [
        Cell(group, row, column, quantities[column], configs, score)
        for (row, column), score in paper.items()
        if (configs := tuple(runs(row, column)))
    ]


def with_recipe(
    dataset: str,
    model: str,
    over: Literal["split", "seed"],
    numbers: Sequence[int],
    settings: Mapping[str, Any],
) -> list[Config]:
    """A run for each split, or seed, with the recipe for these names; none without a recipe.

    Args:
        dataset, model: names.
        over: what differs from run to run.
        numbers: the splits or seeds.
        settings: what differs from the recipe.
    """
    if find_recipe(_name(dataset), model) is None:
        return []
    return each(configure(dataset, model, None, dict(settings)), over, numbers)


def each(config: Config, over: Literal["split", "seed"], numbers: Sequence[int]) -> list[Config]:
    """The same run for each split, or seed."""
    return [config.model_copy(update={over: number}) for number in numbers]


def with_recipe_of(
    dataset: str, model: str, owner: str, source: str, settings: Mapping[str, Any]
) -> Config:
    """A run of a model with the recipe of another; options that it does not have are left out.

    Args:
        dataset, model: names.
        owner: the model whose recipe it is.
        source: the data set whose recipe it is.
        settings: what differs from the recipe.
    """
    path = find_recipe(source, owner)
    if path is None:
        raise ValueError(f"there is no recipe for {owner} on {source}")
    recipe = read_recipe(path)
    known = MODELS[NAMES[model]].defaults()
    options = {key: value for key, value in recipe.get("options", {}).items() if key in known}
    options |= settings.get("options", {})
    return without_recipe(dataset, model, {**recipe, **settings, "options": options})


def without_recipe(dataset: str, model: str, settings: Mapping[str, Any]) -> Config:
    """A run with these settings alone, though there may be a recipe for these names.

    Options of that recipe are set to the defaults of the model, so that the configuration says it.
    """
    path = find_recipe(_name(dataset), model)
    usual = {} if path is None else read_recipe(path).get("options", {})
    defaults = MODELS[NAMES[model]].defaults()
    options = {key: defaults[key] for key in usual} | settings.get("options", {})
    return make_config({**settings, "dataset": dataset, "model": model, "options": options})


def means(table: Sequence[Measured]) -> dict[tuple[str, str, str], Measured]:
    """The cells that something was found for, by group, row and column."""
    return {(m.cell.group, m.cell.row, m.cell.column): m for m in table if m.mean is not None}


def _name(dataset: str) -> str:
    return dataset.partition("@")[0]
