"""`eegnn report` and `card`: runs as a page, and as a model card."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from eegnn.cli.app import app
from eegnn.cli.options import DataDir, Device, Precision, RunPath, choose_compute


@app.command()
def report(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN", help="Folders of runs.")],
    out: Annotated[Path, typer.Option(metavar="FILE", help="Where to write the page.")] = Path(
        "report.html"
    ),
    device: Device = "cpu",
    precision: Precision = "32",
    data_dir: DataDir = None,
) -> None:
    """Write a page to look into runs: how they learned, who left when, and what it is worth.

    One file that opens in any browser, without a server or a network. Its explorer draws the
    graph, plays it layer by layer, and shows the trajectory of any node.
    """
    compute = choose_compute(device, precision)
    from eegnn.report.page import write_report

    console = Console(stderr=True)
    with console.status("") as status:
        show = lambda run: status.update(f"looking into {run}")  # noqa: E731
        size = write_report(runs, out, data_dir, show, compute)
    console.print(f"→ {out} ({size / 1e6:.1f} MB)")


@app.command()
def card(
    run: RunPath,
    licence: Annotated[
        str,
        typer.Option("--license", metavar="NAME", help="Of the weights, as the Hub names it."),
    ] = "mit",
) -> None:
    """Write a model card: data set, scores, exits, how to load the weights, licence.

    It is README.md in the folder of the run, where the Hugging Face Hub looks for it; one that is
    there is replaced.
    """
    from eegnn.report.card import write_card

    Console(stderr=True).print(f"→ {write_card(run, licence)}")
