"""`eegnn demo`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from eegnn.cli.app import app, print_json, progress_bar
from eegnn.cli.options import AsJson, option


@app.command()
def demo(
    size: Annotated[int, option("N", "Cells on a side of the board.", min=10, max=1000)] = 100,
    epochs: Annotated[int, option("N", "Passes over the board.", min=1)] = 150,
    seed: Annotated[int, option("N", "The same seed, the same result.", min=0)] = 0,
    out: Annotated[Path, option("FILE", "Where to write the picture: .png, .pdf or .svg.")] = Path(
        "eegnn-demo.png"
    ),
    as_json: Annotated[bool, AsJson] = False,
) -> None:
    """Train EEGNN on a generated Minesweeper board and draw when its nodes leave.

    Needs no network and no data, and takes a minute or two on a laptop.
    """
    if out.suffix not in (".png", ".pdf", ".svg"):
        raise typer.BadParameter(
            f"must end in .png, .pdf or .svg, got {str(out)!r}", param_hint="--out"
        )
    out.parent.mkdir(parents=True, exist_ok=True)  # now, not after the training
    from eegnn.report.board import draw_board
    from eegnn.report.terminal import demo_report
    from eegnn.train.demo import run_demo

    console = Console(stderr=as_json)
    start = time.perf_counter()
    console.print(
        f"Minesweeper, {size} × {size} cells, a fifth of them mines, half of them hidden."
    )
    with progress_bar(epochs) as show:
        result = run_demo(size, epochs, seed, show)
    draw_board(result.data, result.score, result.exits, out)
    seconds = time.perf_counter() - start
    console.print(demo_report(result))
    console.print(f"picture           {out}   ({seconds:.0f} s in all)")
    if as_json:
        print_json(**result.as_dict(), seed=seed, epochs=epochs, picture=str(out), seconds=seconds)
