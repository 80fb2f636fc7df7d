"""Start a run, or resume one."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from eegnn.compute import CPU, Compute
from eegnn.data.open import is_path
from eegnn.distributed import ALONE, Ranks
from eegnn.train.config import Config, make_config
from eegnn.train.loop import Trainer
from eegnn.train.prepare import prepare
from eegnn.train.recipes import find_recipe, read_recipe
from eegnn.train.run import RunFolder


def configure(
    dataset: str | None, model: str | None, recipe: Path | None, settings: dict[str, Any]
) -> Config:
    """Make a configuration from the defaults, the recipe, and single settings, which win.

    Without a recipe it is the one that comes with eegnn for these names, if any; without names,
    they are those of the recipe.
    """
    layers: list[dict[str, Any]] = []
    if recipe is None and dataset is not None and not is_path(dataset):
        recipe = find_recipe(dataset.partition("@")[0], model or "eegnn")
    if recipe is not None:
        layers.append(read_recipe(recipe))
    names = {"dataset": dataset, "model": model}
    layers.append({key: value for key, value in names.items() if value is not None})
    return make_config(*layers, settings)


def default_folder(config: Config) -> Path:
    """Return ``runs/DATASET-MODEL-splitN-seedN``, the folder of a run without ``--out``."""
    name = Path(config.dataset).stem if is_path(config.dataset) else config.dataset
    return Path("runs") / f"{name}-{config.model}-split{config.split}-seed{config.seed}"


def train(
    config: Config,
    folder: Path,
    resume: bool = False,
    root: Path | None = None,
    on_epoch: Callable[[dict[str, Any]], None] | None = None,
    ranks: Ranks = ALONE,
    compute: Compute = CPU,
) -> dict[str, Any]:
    """Train and return the summary; a finished run is not trained again.

    Args:
        config: everything that decides the run.
        folder: where the run is kept.
        resume: go on with the run in ``folder``; where there is none yet, a new one starts.
        root: the data folder.
        on_epoch: called after each epoch with its line of ``metrics.jsonl``.
        ranks: this process and those it trains with.
        compute: device and precision. They may be others than before in a run that goes on.

    Raises:
        FileExistsError: there is a run in the folder already, and ``resume`` is not set.
        ValueError: the run to be resumed has another configuration.
        RuntimeError: another process trains in the folder.
    """
    run = RunFolder(folder)

    def goes_on() -> bool:
        return resume and ranks.on_main(lambda: _holds(run, config))

    if goes_on() and (summary := ranks.on_main(run.summary)) is not None:
        return summary
    problem = ranks.local_main_first(lambda: prepare(config, root))
    trainer = Trainer(config, problem, run, ranks, compute)
    with ExitStack() as stack:
        ranks.on_main(lambda: stack.enter_context(run.owned()))
        if goes_on():  # asked again: another process may have begun it, or finished it, meanwhile
            if (summary := ranks.on_main(run.summary)) is not None:
                return summary
            trainer.resume()
        else:
            ranks.on_main(lambda: run.start(config, problem.task, problem.scale, compute))
        return trainer.fit(on_epoch)


def _holds(run: RunFolder, config: Config) -> bool:
    """Whether the folder holds this run; an error if it holds another one."""
    if not (run.path / "config.json").exists():
        return False
    old, new = run.config().model_dump(), config.model_dump()
    for key in new:
        if new[key] != old[key]:
            raise ValueError(
                f"{run.path} holds a run with {key}={old[key]!r}, not {new[key]!r}: resume it with "
                f"--resume --out alone, or choose another --out"
            )
    return True
