"""Results: a JSON line a run, with all that is needed to get it again."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from eegnn import _json
from eegnn.train.config import Config
from eegnn.train.run import RunFolder
from eegnn.train.schemas import Record


def result_of(folder: RunFolder, command: str, **more: Any) -> dict[str, Any]:
    """Return the line of a finished run, with the command that was typed and ``more`` fields."""
    summary = folder.summary()
    if summary is None:
        raise ValueError(f"{folder.path} is not finished: there is no summary.json")
    return {"command": command, **summary, **folder.about(), **more}


def append_result(path: Path, folder: RunFolder, command: str, **more: Any) -> None:
    """Add a finished run to a file of results, which ends in ``.jsonl``; see :func:`result_of`."""
    append_line(path, result_of(folder, command, **more))


def append_line(path: Path, line: dict[str, Any]) -> None:
    """Add a line to a file of results, with its checksum."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # One write to a file opened for appending: processes that share it do not mix their lines.
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    try:
        os.write(handle, (_json.to_json(_json.seal(line)) + "\n").encode())
    finally:
        os.close(handle)


def read_results(path: Path) -> list[dict[str, Any]]:
    """Read a file of results; a missing one holds none."""
    return _json.read_lines(path, Record) if path.exists() else []


def find_result(path: Path, config: Config) -> dict[str, Any] | None:
    """Return the result of a finished run with exactly this configuration, if there is one.

    A setting that a line does not know, because it is younger, had its default.
    """
    wanted, defaults = config.model_dump(), Config(dataset="").model_dump()
    finished = (line for line in read_results(path) if "failed" not in line)
    return next((line for line in finished if defaults | line["config"] == wanted), None)
