"""Doing the runs of an experiment, once each, by any number of processes."""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from eegnn.experiments.book import Book, key_of
from eegnn.experiments.locks import Locks
from eegnn.experiments.study import Cell, Measured, Measurement
from eegnn.train.config import Config
from eegnn.train.loop import TrainingError
from eegnn.train.run import RunFolder
from eegnn.train.start import configure, default_folder, train

#: Called with a run and the line of its latest epoch; ``None`` before the first.
Watcher = Callable[[Config, dict[str, Any] | None], None]


def do_runs(
    configs: Sequence[Config],
    book: Book,
    runs: Path,
    root: Path | None = None,
    watch: Watcher = lambda config, line: None,
    keep: bool = False,
    measurement: Measurement | None = None,
) -> list[Config]:
    """Train what is not in the book, and write it there.

    A run that another process is at is left to it, but taken over should that process end. A run
    that was interrupted goes on where it was.

    Args:
        configs: the runs.
        book: of results.
        runs: for the folders of runs.
        root: the data folder.
        watch: told of each run when it starts and after each epoch.
        keep: leave the folders of finished runs; else they are removed.
        measurement: done on each trained model, and written with its result.

    Returns:
        What other processes are still at.
    """
    locks = Locks(runs / ".locks")
    try:
        pending = [config for config in configs if not book.has(config)]
        while pending:
            left = []
            for config in pending:
                with locks.hold(key_of(config)) as mine:
                    if not mine:
                        left.append(config)
                        continue
                    book.refresh()  # another process may have finished it since
                    if not book.has(config):
                        _do(config, book, runs, root, watch, keep, measurement)
            if len(left) == len(pending):
                break
            pending = left
        book.refresh()
        return [config for config in pending if not book.has(config)]
    finally:
        locks.close()


def _do(
    config: Config,
    book: Book,
    runs: Path,
    root: Path | None,
    watch: Watcher,
    keep: bool,
    measurement: Measurement | None,
) -> None:
    folder = runs / f"{default_folder(config).name}-{key_of(config)[:8]}"
    watch(config, None)
    try:
        begun = (folder / "config.json").exists()
        train(config, folder, begun, root, lambda line: watch(config, line))
    except TrainingError as error:
        book.add_failure(config, str(error), train_command(config))
        keep = False
    else:
        more = {} if measurement is None else {measurement.field: measurement.look(folder, root)}
        book.add(RunFolder(folder), train_command(config), **more)
    if not keep:
        shutil.rmtree(folder)


def train_command(config: Config) -> str:
    """Return what to type for this run alone."""
    usual = configure(config.dataset, config.model, None, {}).model_dump()
    words = ["eegnn", "train", config.dataset, "--model", config.model]
    for name, value in config.model_dump(exclude={"dataset", "model", "options"}).items():
        if name in ("split", "seed", "epochs"):
            words += [f"--{name}", str(value)] if value != usual[name] else []
        elif value != usual[name]:
            words += ["--set", f"{name}={json.dumps(value)}"]
    for name, value in config.options.items():
        if name not in usual["options"] or value != usual["options"][name]:
            words += ["--set", f"options.{name}={json.dumps(value)}"]
    return shlex.join(words)


def measure(cells: Sequence[Cell], book: Book) -> list[Measured]:
    """Look up what there is for each cell."""
    table = []
    for cell in cells:
        found = [book.find(config) for config in cell.configs]
        failed = sum(book.failed(config) for config in cell.configs)
        table.append(Measured(cell, tuple(line for line in found if line is not None), failed))
    return table
