"""`eegnn tune`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from eegnn.cli.app import app, print_json
from eegnn.cli.options import MODEL, STORAGE, AsJson, DataDir, DatasetName, Epochs


@app.command()
def tune(
    dataset: Annotated[str, DatasetName],
    model: Annotated[str, typer.Option(metavar="NAME", help=MODEL)] = "eegnn",
    trials: Annotated[
        int, typer.Option(min=1, metavar="N", help="Settings to try, by all processes together.")
    ] = 32,
    storage: Annotated[
        str,
        typer.Option(
            metavar="FILE|URL",
            help="Where Optuna keeps the study; who has the same one shares the work: " + STORAGE,
        ),
    ] = "sqlite:///study.db",
    epochs: Epochs = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="A setting that is not searched, as for `eegnn train`. Repeat it for more.",
        ),
    ] = None,
    out: Annotated[
        Path, typer.Option(metavar="FOLDER", help="For trials, best.json and pictures.")
    ] = Path("study"),
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Search for good settings, in the search space of the paper.

    Needs `pip install 'eegnn[tune]'`. Start the command several times to share the work; a study
    that was stopped goes on with the same command. Train with what was found with
    `eegnn train --recipe study/best.json`.
    """
    from eegnn.train.config import parse_overrides
    from eegnn.train.start import configure
    from eegnn.train.tune import tune as search

    overrides = ({} if epochs is None else {"epochs": epochs}) | parse_overrides(settings or [])
    config = configure(dataset, model, None, overrides)
    messages = Console(stderr=True)

    def tell(number: int, state: str, value: float | None) -> None:
        score = "" if value is None else f"  validation {value:.4f}"
        messages.print(f"trial {number}: {state}{score}")

    best = search(config, trials, storage, out, data_dir, tell)
    Console(stderr=as_json).print(
        f"best of {best['finished']}: trial {best['number']}, validation {best['val']:.4f}, test "
        f"{best['test']:.4f} → {best['recipe']}"
    )
    if as_json:
        print_json(dataset=dataset, model=model, **best)
