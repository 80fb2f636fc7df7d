"""`eegnn datasets`."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from eegnn.cli.app import app, print_json
from eegnn.cli.options import AsJson, DataDir, flag


@app.command()
def datasets(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="Show this one in full, counted anew.",
            show_default="all, in brief",
        ),
    ] = None,
    check: Annotated[
        bool,
        flag(
            "--check",
            "Open those that need no network, count, and compare with the published figures; "
            "exit code 1 for a difference that is not known.",
        ),
    ] = False,
    data_dir: Annotated[Path | None, DataDir] = None,
    as_json: Annotated[bool, AsJson] = False,
) -> None:
    """List the data sets: what they are, where they come from, whether they are here."""
    from eegnn.report.datasets import dataset_rows, table_of

    measure = check or name is not None
    with Console(stderr=True).status("counting …") if measure else nullcontext():
        rows = dataset_rows([name] if name else None, data_dir, measure)
    console = Console(stderr=as_json)
    console.print(table_of(rows, console.width))
    if as_json:
        print_json(datasets=rows)
    differences = [found for row in rows for found in row.get("differences") or []]
    if check and not all(found["known"] for found in differences):
        raise typer.Exit(1)
