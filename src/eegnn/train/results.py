"""Results: a JSON line a run, with all that is needed to get it again."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from eegnn.train.config import Config
from eegnn.train.run import RunFolder


def result_of(folder: RunFolder, command: str, **more: Any) -> dict[str, Any]:
    """Return the line of a finished run, with the command that was typed and ``more`` fields."""
    summary = folder.summary()
    if summary is None:
        raise ValueError(f"{folder.path} is not finished: there is no summary.json")
    about = json.loads((folder.path / "config.json").read_bytes())
    return {"command": command, **summary, **about, **more}


def append_result(path: Path, folder: RunFolder, command: str, **more: Any) -> None:
    """Add a finished run to a file of results, which ends in ``.jsonl``; see :func:`result_of`."""
    append_line(path, result_of(folder, command, **more))


def append_line(path: Path, line: dict[str, Any]) -> None:
    """Add a line to a file of results."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # One write to a file opened for appending: processes that share it do not mix their lines.
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    try:
        os.write(handle, (json.dumps(line) + "\n").encode())
    finally:
        os.close(handle)


def read_results(path: Path) -> list[dict[str, Any]]:
    """Read a file of results; a missing one holds none."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def find_result(path: Path, config: Config) -> dict[str, Any] | None:
    """Return the result of a run with exactly this configuration, if there is one.

    A setting that a line does not know, because it is younger, had its default.
    """
    wanted, defaults = config.model_dump(), Config(dataset="").model_dump()
    return next((x for x in read_results(path) if defaults | x["config"] == wanted), None)
