"""`eegnn report` and `card`: runs as a page, and as a model card."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from eegnn.cli.app import app
from eegnn.cli.options import DataDir, Device, Precision, RunPath, choose_compute, option


@app.command()
def report(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN", help="Folders of runs.")],
    out: Annotated[Path, option("FILE", "Where to write the page.")] = Path("report.html"),
    device: Annotated[str, Device] = "cpu",
    precision: Annotated[str, Precision] = "32",
    data_dir: Annotated[Path | None, DataDir] = None,
) -> None:
    """Write a page to look into runs: how they learned, when units left, and what that saves.

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
    run: Annotated[Path, RunPath],
    licence: Annotated[
        str, option("NAME", "Of the weights, as the Hub names it.", "--license")
    ] = "mit",
) -> None:
    """Write a model card: data set, scores, exits, how to load the weights, licence.

    It is README.md in the folder of the run, where the Hugging Face Hub looks for it; one that is
    there is replaced.
    """
    from eegnn.report.card import write_card

    Console(stderr=True).print(f"→ {write_card(run, licence)}")
