"""The results of an experiment: found in any file of the folder, written to its own."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

from eegnn.studies.experiment import Cell, CellResult, Experiment, Scope
from eegnn.studies.quantities import RunRecord
from eegnn.studies.run_locks import exclusive
from eegnn.train.config import Config, make_config
from eegnn.train.results import append_line, read_results


def key_of(config: Config) -> str:
    """Return hexadecimal digits that only this configuration has."""
    return hashlib.sha256(config.model_dump_json().encode()).hexdigest()


class ResultStore:
    """The records of runs, whichever experiment and process they are from.

    All ``.jsonl`` files of the folder are read once; after that only the experiment's own, and
    only when it has grown. Runs of quick versions count for quick versions alone, even where the
    configuration is the same.

    Args:
        folder: of results.
        name: of the experiment; its runs go to ``NAME.jsonl``, those that could not be trained to
            ``NAME.failures.jsonl``.
        field: what a record must have beside the usual; others do not count.
    """

    def __init__(self, folder: Path, name: str, field: str | None = None) -> None:
        self.field = field
        self.path = folder / f"{name}.jsonl"
        self.failures = folder / f"{name}.failures.jsonl"
        self._results: dict[str, RunRecord] = {}
        self._failed: dict[str, RunRecord] = {}
        self._sizes: dict[Path, int] = {}
        for path in sorted(folder.glob("*.jsonl")):
            if path not in (self.path, self.failures) and _is_quick(path) == _is_quick(self.path):
                self._read(path)
        self.refresh()

    @classmethod
    def of(cls, experiment: Experiment, scope: Scope, folder: Path) -> ResultStore:
        """Open the results of an experiment."""
        field = None if experiment.measurement is None else experiment.measurement.field
        return cls(folder, experiment.file_name(scope), field)

    def refresh(self) -> None:
        """Read what other processes have written."""
        self._read(self.path)
        self._read(self.failures)

    def find(self, config: Config) -> RunRecord | None:
        """Return the record of the run with exactly this configuration.

        The record of a run that could not be trained has a field ``"failed"`` with the reason.
        """
        key = key_of(config)
        return self._results.get(key) or self._failed.get(key)

    def missing(self, configs: Iterable[Config]) -> list[Config]:
        """Return the runs that are neither done nor failed."""
        return [config for config in configs if self.find(config) is None]

    def results(self, cells: Iterable[Cell]) -> list[CellResult]:
        """Look up the runs of each cell."""
        table = []
        for cell in cells:
            records = [record for config in cell.configs if (record := self.find(config))]
            runs = tuple(record for record in records if "failed" not in record)
            table.append(CellResult(cell, runs, failed=len(records) - len(runs)))
        return table

    def add(self, record: RunRecord) -> None:
        """Write the record of a run that is not in the store, a result or a failure.

        Processes that share the folder may all get the same record: one of them writes it.
        """
        config = make_config(record["config"])
        if not self.missing([config]):
            return
        path = self.failures if "failed" in record else self.path
        path.parent.mkdir(parents=True, exist_ok=True)
        with exclusive(path):
            self.refresh()
            if self.missing([config]):
                append_line(path, record)
        self.refresh()

    def _read(self, path: Path) -> None:
        size = path.stat().st_size if path.exists() else 0
        if self._sizes.get(path, 0) == size:
            return
        self._sizes[path] = size
        for key, record in _keyed(path.resolve(), path.stat().st_mtime_ns, size):
            if "failed" in record:
                self._failed.setdefault(key, record)
            elif self.field is None or self.field in record:
                self._results.setdefault(key, record)


@lru_cache(maxsize=256)
def _keyed(path: Path, changed: int, size: int) -> list[tuple[str, RunRecord]]:
    """Read a file once, however many experiments need it; again when it has changed."""
    found = []
    for record in read_results(path):
        try:
            found.append((key_of(make_config(_current_settings(record["config"]))), record))
        except (KeyError, TypeError, ValueError):
            continue  # of a version with other settings: no run that can be asked for
    return found


#: Settings of version 0.1 that are gone, and the values with which they changed nothing.
_GONE = {"head_lr_factor": 1.0, "full_depth_weight": 0.0, "average": 0.0, "warmup": 0, "halo": 1}


def _current_settings(config: dict[str, Any]) -> dict[str, Any]:
    """Translate a configuration of version 0.1 into that of the same run today.

    A setting that is gone is left out where it changed nothing; elsewhere it stays, and the
    configuration is refused: that run cannot be done any more.
    """
    settings = {key: value for key, value in config.items() if _GONE.get(key, _GONE) != value}
    dim = settings.pop("encoding_dim", 16)
    if settings.get("encoding", "none") != "none" and dim != 16:
        settings["encoding"] = f"{settings['encoding']}:{dim}"
    options = dict(settings.get("options", {}))
    if options.get("decoder_bias") == (options.get("decoder_layers", 1) > 1):
        del options["decoder_bias"]
    return {**settings, "options": options}


def _is_quick(path: Path) -> bool:
    return path.name.split(".")[0].endswith("-quick")
