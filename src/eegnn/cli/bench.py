"""`eegnn bench`."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

from eegnn.cli.app import bench, print_json
from eegnn.cli.options import AsJson


@bench.command("training")
def bench_training(
    threads: Annotated[int, typer.Option(min=1, metavar="N", help="Threads to use.")] = 1,
    passes: Annotated[
        int, typer.Option(min=1, metavar="N", help="Timed passes, of which the median counts.")
    ] = 5,
    as_json: AsJson = False,
) -> None:
    """Compare a training step of SASGNN with the same mathematics by gather and scatter.

    Forward and backward, ten layers, width 32, on a graph with the size of Tolokers and on a
    100 × 100 grid.
    """
    from eegnn.bench.training import compare, table

    console = Console(stderr=True)
    with console.status("measuring …"):
        rows = compare(threads=threads, passes=passes)
    Console(stderr=as_json).print(table(rows, threads))
    if as_json:
        print_json(threads=threads, passes=passes, rows=[row.as_dict() for row in rows])
