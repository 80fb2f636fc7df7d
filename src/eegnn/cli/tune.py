"""`eegnn tune`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from eegnn.cli.app import app, print_json
from eegnn.cli.options import (
    MODEL,
    STORAGE,
    AsJson,
    DataDir,
    DatasetName,
    Device,
    Epochs,
    InputPath,
    Precision,
    Settings,
    choose_compute,
)


@app.command()
def tune(
    dataset: Annotated[str | None, DatasetName] = None,
    model: Annotated[str, typer.Option(metavar="NAME", help=MODEL)] = "eegnn",
    trials: Annotated[
        int, typer.Option(min=1, metavar="N", help="Settings to try, by all processes together.")
    ] = 32,
    storage: Annotated[
        str,
        typer.Option(
            metavar="FILE|URL",
            help="Where Optuna keeps the study, which processes with the same one share: "
            + STORAGE,
        ),
    ] = "sqlite:///study.db",
    input_path: InputPath = None,
    epochs: Epochs = None,
    settings: Settings = None,
    out: Annotated[
        Path, typer.Option(metavar="FOLDER", help="For trials, best.json and pictures.")
    ] = Path("study"),
    device: Device = "cpu",
    precision: Precision = "32",
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Search for good settings, in the search space of the paper; --set gives the others.

    Needs `pip install 'eegnn[tune]'`. Start the command several times to share the work; a study
    that was stopped goes on with the same command. Train with what was found with
    `eegnn train --recipe study/best.json`.
    """
    if not (dataset or input_path):
        raise typer.BadParameter("give DATASET or --input")
    compute = choose_compute(device, precision)
    from eegnn.data.open import as_path
    from eegnn.train.config import parse_overrides
    from eegnn.train.start import configure
    from eegnn.train.tune import tune as search

    dataset = as_path(input_path) if input_path else dataset
    config = configure(dataset, model, None, parse_overrides(settings, epochs=epochs))
    messages = Console(stderr=True)

    def on_trial(number: int, state: str, value: float | None) -> None:
        score = "" if value is None else f"  validation {value:.4f}"
        messages.print(f"trial {number}: {state}{score}")

    best = search(config, trials, storage, out, data_dir, on_trial, compute)
    Console(stderr=as_json).print(
        f"best of {best['finished']}: trial {best['number']}, validation {best['val']:.4f}, test "
        f"{best['test']:.4f} → {best['recipe']}"
    )
    if as_json:
        print_json(dataset=dataset, model=model, **best)
