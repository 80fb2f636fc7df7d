"""Doing the runs of an experiment, once each, by any number of processes."""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from eegnn.studies.claims import ClaimLost, Claims, SharedClaims
from eegnn.studies.locks import Locks
from eegnn.studies.store import Book, key_of
from eegnn.studies.study import Cell, Line, Measured, Measurement
from eegnn.train.config import Config
from eegnn.train.loop import TrainingError
from eegnn.train.results import result_of
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
    storage: str | None = None,
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
        storage: shared with other machines, see :func:`~eegnn.train.storage.open_storage`. Results
            of others come into the book too, and the function returns when all runs are there.
            ``None``: shared with processes of this machine that have the same ``runs``.

    Returns:
        What other processes are still at; nothing with a storage.
    """
    locks = Locks(runs / ".locks")
    try:
        name = f"reproduce-{book.path.stem}"
        claims = Claims(locks) if storage is None else SharedClaims(locks, storage, name)
        known = {key_of(config): book.line(config) for config in configs}
        claims.publish({key: line for key, line in known.items() if line is not None})
        pending = [config for config in configs if not book.has(config)]
        while pending:
            done = 0
            for config in pending:
                key = key_of(config)
                with claims.hold(key) as mine:
                    if not mine:
                        continue
                    book.refresh()  # another process may have finished it since
                    if (line := book.line(config)) is not None:
                        claims.finish(key, line)
                    else:
                        _do(config, book, claims, runs, root, watch, keep, measurement)
                    done += 1
            for line in claims.results():
                book.add(line)
            pending = [config for config in pending if not book.has(config)]
            if not done and not claims.wait():
                break
        book.refresh()
        return [config for config in pending if not book.has(config)]
    finally:
        locks.close()


def _do(
    config: Config,
    book: Book,
    claims: Claims,
    runs: Path,
    root: Path | None,
    watch: Watcher,
    keep: bool,
    measurement: Measurement | None,
) -> None:
    key = key_of(config)
    folder = runs / f"{default_folder(config).name}-{key[:8]}"
    watch(config, None)

    def on_epoch(epoch: dict[str, Any]) -> None:
        claims.check(key)
        watch(config, epoch)

    try:
        begun = (folder / "config.json").exists()
        train(config, folder, begun, root, on_epoch)
        more = {} if measurement is None else {measurement.field: measurement.look(folder, root)}
        line: Line = result_of(RunFolder(folder), train_command(config), **more)
    except TrainingError as error:
        about = {"command": train_command(config), "failed": str(error)}
        line, keep = {**about, "config": config.model_dump()}, False
    except ClaimLost:
        return  # another process has begun it anew
    if not claims.finish(key, line):
        return
    book.add(line)
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
