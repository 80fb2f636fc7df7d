"""The results of an experiment: found in any file of the folder, written to its own."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from eegnn.studies.experiment import Cell, CellResult, Experiment, Scope
from eegnn.studies.quantities import RunRecord
from eegnn.studies.run_locks import exclusive
from eegnn.studies.tuning import cell_result
from eegnn.train.config import Config
from eegnn.train.models import all_options
from eegnn.train.results import append_line, read_results

#: Settings of version 0.1 that are gone, and the values with which they changed nothing.
_GONE = {"head_lr_factor": 1.0, "full_depth_weight": 0.0, "average": 0.0, "warmup": 0, "halo": 1}
#: Settings, some of version 0.1, that decide nothing in a model without exits.
_OF_EXITS = ("cost_weight", "full_depth_weight", "head_lr_factor")


def settings_of(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return all that decides a run, by name; options are called as ``options.dropout``.

    What is not set has its default, and what decides nothing is left out. A configuration of
    version 0.1 is translated into that of the same run today; a setting that is gone stays where it
    changed something, and no run of today has it.
    """
    options = dict(config.get("options", {}))
    if config.get("model") == "eegnn" and options.get("activation") == "relu_tanh":
        del options["activation"]  # EEGNN had a choice once
    if options.get("decoder_bias") == (options.get("decoder_layers", 1) > 1):
        del options["decoder_bias"]
    settings = {**Config(dataset="").model_dump(), **config}
    settings = {name: value for name, value in settings.items() if _GONE.get(name, ()) != value}
    dim = settings.pop("encoding_dim", 16)
    if settings["encoding"] != "none" and dim != 16:
        settings["encoding"] += f":{dim}"
    if not has_exits(settings["model"]):
        settings = {name: value for name, value in settings.items() if name not in _OF_EXITS}
    del settings["options"]
    all_of_them = all_options(settings["model"], options)
    return settings | {f"options.{name}": value for name, value in all_of_them.items()}


def has_exits(model: str) -> bool:
    """Whether a model, by its name on the command line, learns where to exit."""
    return model in ("eegnn", "apgcn") or model.startswith("ee-")


def key_of(config: Config) -> str:
    """Return hexadecimal digits that only runs with the same settings have."""
    return _key(settings_of(config.model_dump()))


def settings_of_record(record: RunRecord) -> dict[str, Any]:
    """Return what decided a finished run: its own defaults, where its record has them."""
    config = record["config"]
    options = {**config.get("options", {}), **record.get("options", {})}
    return settings_of({**config, "options": options})


def read_folder(folder: Path, quick: bool = False) -> list[tuple[str, RunRecord]]:
    """Return the keys and records of all runs in the folder, of full or of quick versions.

    ``"source"`` of a record is its file and the number of its line.
    """
    paths = [path for path in sorted(folder.glob("*.jsonl")) if _is_quick(path) == quick]
    return [found for path in paths for found in _read(path)]


class ResultStore:
    """The records of runs, whichever experiment and process they are from.

    All ``.jsonl`` files of the folder are read once; after that only the experiment's own, and
    only when it has grown. Of several runs with the same settings the first counts, by the name of
    the file and its lines. Runs of quick versions count for quick versions alone, even where the
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
        self._keep(read_folder(folder, _is_quick(self.path)))

    @classmethod
    def of(cls, experiment: Experiment, scope: Scope, folder: Path) -> ResultStore:
        """Open the results of an experiment."""
        field = None if experiment.measurement is None else experiment.measurement.field
        return cls(folder, experiment.file_name(scope), field)

    def refresh(self) -> None:
        """Read what other processes have written."""
        self._keep([*_read(self.path), *_read(self.failures)])

    def find(self, config: Config) -> RunRecord | None:
        """Return the record of the run with these settings.

        The record of a run that could not be trained has a field ``"failed"`` with the reason.
        """
        return self._find(key_of(config))

    def missing(self, configs: Iterable[Config]) -> list[Config]:
        """Return the runs that are neither done nor failed."""
        return [config for config in configs if self.find(config) is None]

    def results(self, cells: Iterable[Cell]) -> list[CellResult]:
        """Look up the runs of each cell."""
        return [
            cell_result(cell, [found for config in cell.configs if (found := self.find(config))])
            for cell in cells
        ]

    def add(self, record: RunRecord) -> None:
        """Write the record of a run that is not in the store, a result or a failure.

        Processes that share the folder may all get the same record: one of them writes it.
        """
        key = _key(settings_of_record(record))
        if self._find(key) is not None:
            return
        path = self.failures if "failed" in record else self.path
        path.parent.mkdir(parents=True, exist_ok=True)
        with exclusive(path):
            self.refresh()
            if self._find(key) is None:
                append_line(path, {name: record[name] for name in record if name != "source"})
        self.refresh()

    def _find(self, key: str) -> RunRecord | None:
        return self._results.get(key) or self._failed.get(key)

    def _keep(self, found: Iterable[tuple[str, RunRecord]]) -> None:
        for key, record in found:
            if "failed" in record:
                self._failed.setdefault(key, record)
            elif self.field is None or self.field in record:
                self._results.setdefault(key, record)


def _key(settings: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()


def _read(path: Path) -> list[tuple[str, RunRecord]]:
    if not path.exists():
        return []
    return _read_once(path.resolve(), path.stat().st_mtime_ns, path.stat().st_size)


@lru_cache(maxsize=256)
def _read_once(path: Path, changed: int, size: int) -> list[tuple[str, RunRecord]]:
    """Read a file once, however many experiments need it; again when it has changed."""
    return [
        (_key(settings_of_record(record)), {**record, "source": f"{path.name}:{number}"})
        for number, record in enumerate(read_results(path), start=1)
    ]


def _is_quick(path: Path) -> bool:
    return path.name.split(".")[0].endswith("-quick")
