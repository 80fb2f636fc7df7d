"""Doing the runs of an experiment, once each, by any number of processes."""

from __future__ import annotations

import json
import shlex
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eegnn.analysis.run import open_run
from eegnn.compute import CPU, Compute
from eegnn.studies.experiment import Measurement
from eegnn.studies.quantities import RunRecord
from eegnn.studies.run_locks import LockLost, RunLocks, SharedRunLocks
from eegnn.studies.store import ResultStore, key_of
from eegnn.train.config import Config
from eegnn.train.loop import TrainingError
from eegnn.train.results import result_of
from eegnn.train.run import RunFolder, commit, versions
from eegnn.train.schemas import NO_MODEL
from eegnn.train.start import configure, default_folder, train

#: Called with a run and the metrics of its latest epoch; ``None`` before the first.
Watcher = Callable[[Config, dict[str, Any] | None], None]


@dataclass(frozen=True)
class Runner:
    """Trains the runs that are not in the store, and adds them to it.

    Args:
        store: of results.
        folder: for the folders of runs. They stay, without what only serves to resume, so that
            another experiment can measure something else on the same model.
        root: the data folder.
        measurement: done on each trained model, or data set, and written with its result.
        watch: called for each run when it starts and after each epoch.
        compute: device and precision, which are recorded and do not make another run of it.
    """

    store: ResultStore
    folder: Path
    root: Path | None = None
    measurement: Measurement | None = None
    watch: Watcher = lambda config, metrics: None
    compute: Compute = CPU

    def run(self, configs: Sequence[Config], storage: str | None = None) -> list[Config]:
        """Do the runs.

        A run that another process does is left to it, but taken over should that process end. A
        run that was interrupted is resumed.

        Args:
            configs: the runs.
            storage: shared with other machines, see :func:`~eegnn.train.storage.open_storage`.
                Results of others are added to the store too, and the function returns when all
                runs are there. ``None``: shared with processes of this machine that have the same
                ``folder``.

        Returns:
            The runs that other processes still do; none with a storage.
        """
        with closing(self._open_locks(storage)) as locks:
            known = {key_of(config): self.store.find(config) for config in configs}
            locks.publish({key: record for key, record in known.items() if record is not None})
            pending = self.store.missing(configs)
            while pending:
                done = [self._run_if_free(config, locks) for config in pending]
                for record in locks.new_results():
                    self.store.add(record)
                pending = self.store.missing(pending)
                if not any(done) and not locks.wait():
                    break
        self.store.refresh()
        return self.store.missing(pending)

    def _open_locks(self, storage: str | None) -> RunLocks:
        path = self.folder / ".locks"
        if storage is None:
            return RunLocks(path)
        return SharedRunLocks(path, storage, f"reproduce-{self.store.path.stem}")

    def _run_if_free(self, config: Config, locks: RunLocks) -> bool:
        """Do a run unless another process does; return whether it was free."""
        key = key_of(config)
        with locks.hold(key) as free:
            if not free:
                return False
            self.store.refresh()
            record = self.store.find(config)  # another process may have finished it since
            if record is not None:
                locks.finish(key, record)
                return True
            folder = self.folder / f"{default_folder(config).name}-{key[:8]}"
            try:
                record = self._train(config, folder, lambda: locks.check(key))
            except LockLost:
                return True  # another process has started it again
            if locks.finish(key, record):
                self.store.add(record)
                if "failed" in record:
                    shutil.rmtree(folder)
                else:
                    (folder / "state.pt").unlink(missing_ok=True)
            return True

    def _train(self, config: Config, folder: Path, check: Callable[[], None]) -> RunRecord:
        """Train a model and return the record of the run, or that of its failure.

        ``check`` is called after each epoch.
        """
        self.watch(config, None)
        if config.model == NO_MODEL and self.measurement is not None:
            return self._measure_data(config, self.measurement)

        def on_epoch(metrics: dict[str, Any]) -> None:
            check()
            self.watch(config, metrics)

        command, run = train_command(config), RunFolder(folder)
        resume = (folder / "config.json").exists()
        # The settings of the folder are the same, though perhaps written differently.
        settings = run.config() if resume else config
        try:
            train(settings, folder, resume, self.root, on_epoch, compute=self.compute)
        except TrainingError as error:
            return {"command": command, "failed": str(error), "config": config.model_dump()}
        if self.measurement is None:
            return result_of(run, command)
        found = self.measurement.measure(*open_run(folder, self.root, self.compute))
        return result_of(run, command, **{self.measurement.field: found})

    def _measure_data(self, config: Config, measurement: Measurement) -> RunRecord:
        start = time.monotonic()
        found = measurement.measure(config.dataset, self.root)
        return {
            "command": f"eegnn datasets {config.dataset}",
            "dataset": config.dataset,
            measurement.field: found,
            "seconds": time.monotonic() - start,
            "config": config.model_dump(),
            "versions": versions(),
            "commit": commit(),
        }


def train_command(config: Config) -> str:
    """Return the command that does this run alone."""
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
