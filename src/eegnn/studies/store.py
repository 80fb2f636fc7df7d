"""The results of an experiment: found in any file of the folder, written to its own."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path
from typing import Any

from eegnn.studies.locks import exclusive
from eegnn.studies.study import Line
from eegnn.train.config import Config, make_config
from eegnn.train.results import append_line, read_results


def key_of(config: Config) -> str:
    """Return hexadecimal digits that only this configuration has."""
    return hashlib.sha256(config.model_dump_json().encode()).hexdigest()


class Book:
    """What was run already, whoever ran it.

    All ``.jsonl`` files of the folder are read once; after that only the experiment's own, and
    only when it has grown. What quick versions have run counts for quick versions alone, even
    where the configuration is the same.

    Args:
        folder: of results.
        name: of the experiment; its runs go to ``NAME.jsonl``, those that could not be trained to
            ``NAME.failures.jsonl``.
        field: what a line must have beside the usual; others do not count.
    """

    def __init__(self, folder: Path, name: str, field: str | None = None) -> None:
        self.field = field
        self.path = folder / f"{name}.jsonl"
        self.failures = folder / f"{name}.failures.jsonl"
        self._lines: dict[str, Line] = {}
        self._failed: dict[str, Line] = {}
        self._sizes: dict[Path, int] = {}
        for path in sorted(folder.glob("*.jsonl")):
            if path not in (self.path, self.failures) and _is_quick(path) == _is_quick(self.path):
                self._read(path)
        self.refresh()

    def refresh(self) -> None:
        """Take in what other processes have written."""
        self._read(self.path)
        self._read(self.failures)

    def find(self, config: Config) -> Line | None:
        """Return the result of a run with exactly this configuration."""
        return self._lines.get(key_of(config))

    def failed(self, config: Config) -> bool:
        """Whether that run was tried and could not be trained."""
        return key_of(config) in self._failed

    def has(self, config: Config) -> bool:
        """Whether there is nothing left to do for that run."""
        return self.line(config) is not None

    def line(self, config: Config) -> Line | None:
        """Return the line of that run, be it a result or a failure."""
        return self.find(config) or self._failed.get(key_of(config))

    def add(self, line: Line) -> None:
        """Write down a run that is not in the book, a result or a failure.

        Processes that share the folder may all be told of the same run: one of them writes it.
        """
        config = make_config(line["config"])
        if self.has(config):
            return
        path = self.failures if "failed" in line else self.path
        path.parent.mkdir(parents=True, exist_ok=True)
        with exclusive(path):
            self.refresh()
            if not self.has(config):
                append_line(path, line)
        self.refresh()

    def _read(self, path: Path) -> None:
        size = path.stat().st_size if path.exists() else 0
        if self._sizes.get(path, 0) == size:
            return
        self._sizes[path] = size
        for key, line in _keyed(path.resolve(), path.stat().st_mtime_ns, size):
            if "failed" in line:
                self._failed.setdefault(key, line)
            elif self.field is None or self.field in line:
                self._lines.setdefault(key, line)


@lru_cache(maxsize=256)
def _keyed(path: Path, changed: int, size: int) -> list[tuple[str, Line]]:
    """Read a file once, however many experiments look into it; anew when it has changed."""
    found = []
    for line in read_results(path):
        try:
            found.append((key_of(make_config(_of_today(line["config"]))), line))
        except (KeyError, TypeError, ValueError):
            continue  # of a version with other settings: no run that can be asked for
    return found


#: Settings of version 0.1 that are gone, and the values with which they changed nothing.
_GONE = {"head_lr_factor": 1.0, "full_depth_weight": 0.0, "average": 0.0, "warmup": 0, "halo": 1}


def _of_today(config: dict[str, Any]) -> dict[str, Any]:
    """A configuration of version 0.1 as the same run is configured now.

    A setting that is gone is left out where it changed nothing; elsewhere it stays, and the
    configuration is refused: that run cannot be done any more.
    """
    today = {key: value for key, value in config.items() if _GONE.get(key, _GONE) != value}
    dim = today.pop("encoding_dim", 16)
    if today.get("encoding", "none") != "none" and dim != 16:
        today["encoding"] = f"{today['encoding']}:{dim}"
    options = dict(today.get("options", {}))
    if options.get("decoder_bias") == (options.get("decoder_layers", 1) > 1):
        del options["decoder_bias"]
    return {**today, "options": options}


def _is_quick(path: Path) -> bool:
    return path.name.split(".")[0].endswith("-quick")
