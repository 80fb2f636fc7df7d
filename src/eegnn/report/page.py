"""The report: runs as one page that opens from disk, with no server and no network."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Sequence
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

from eegnn.compute import CPU, Compute
from eegnn.io import write_atomically
from eegnn.report.page_pack import script_json
from eegnn.report.page_run import run_content

#: Files of the folder ``assets``, in the order in which the page runs them.
SCRIPTS = ("charts.js", "explorer.js", "page.js")


def write_report(
    runs: Sequence[Path],
    out: Path,
    data_dir: Path | None = None,
    on_run: Callable[[Path], None] = lambda run: None,
    compute: Compute = CPU,
) -> int:
    """Write the page of some runs, and return its bytes; ``on_run`` is called before each run."""
    if not runs:
        raise ValueError("runs must name at least one folder, got none")
    contents = []
    for run in runs:
        on_run(run)
        contents.append(run_content(run, data_dir, compute))
    page = page_of(contents).encode()
    write_atomically(out, page)
    return len(page)


def page_of(contents: Sequence[dict[str, Any]]) -> str:
    """Fill ``page.html`` with what :func:`~eegnn.report.page_run.run_content` returns."""
    names = ", ".join(dict.fromkeys(f"{run['model']} on {run['dataset']}" for run in contents))
    parts = {
        "title": html.escape(f"EEGNN report: {names}"),
        "style": _asset("page.css"),
        "data": script_json({"version": version("eegnn"), "runs": list(contents)}),
        "script": "\n".join(_asset(name) for name in SCRIPTS),
    }
    # In one pass, so that text that was filled in is not searched for marks.
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], _asset("page.html"))


def _asset(name: str) -> str:
    return files("eegnn.report").joinpath("assets", name).read_text(encoding="utf-8")
