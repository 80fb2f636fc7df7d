"""Start a run, or take one up again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from eegnn.train.config import Config, make_config
from eegnn.train.loop import Trainer
from eegnn.train.prepare import prepare
from eegnn.train.recipes import find_recipe, read_recipe
from eegnn.train.run import RunFolder


def configure(
    dataset: str | None, model: str | None, recipe: Path | None, settings: dict[str, Any]
) -> Config:
    """Put a configuration together: defaults, then the recipe, then what the user says.

    Args:
        dataset, model: names; ``None`` to take them from the recipe.
        recipe: a file; ``None`` for the one that comes with eegnn for these names, if any.
        settings: single settings, which win.
    """
    layers: list[dict[str, Any]] = []
    if recipe is None and dataset is not None:
        recipe = find_recipe(dataset.partition("@")[0], model or "eegnn")
    if recipe is not None:
        layers.append(read_recipe(recipe))
    names = {"dataset": dataset, "model": model}
    layers.append({key: value for key, value in names.items() if value is not None})
    return make_config(*layers, settings)


def default_folder(config: Config) -> Path:
    """``runs/DATASET-MODEL-splitN-seedN``."""
    name = Path(config.dataset).stem if config.dataset.endswith(".npz") else config.dataset
    return Path("runs") / f"{name}-{config.model}-split{config.split}-seed{config.seed}"


def train(
    config: Config,
    folder: Path,
    resume: bool = False,
    root: Path | None = None,
    on_epoch: Callable[[dict[str, Any]], None] | None = None,
) -> dict[str, Any]:
    """Train and return the summary; a finished run is not trained again.

    Args:
        config: everything that decides the run; with ``resume`` it must be that of the folder.
        folder: where the run is kept.
        resume: go on with the run in ``folder``.
        root: the data folder.
        on_epoch: called after each epoch with its line of ``metrics.jsonl``.
    """
    run = RunFolder(folder)
    if resume and (done := run.summary()) is not None:
        return done
    trainer = Trainer(config, prepare(config, root), run)
    if resume:
        trainer.resume()
    else:
        run.start(config)
    return trainer.fit(on_epoch)
