"""`eegnn tune`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

import eegnn.cli.options as opt
from eegnn.cli.app import app, print_json

Trials = opt.option("N", "Settings to try, by all processes together.", min=1)
Storage = opt.option(
    "FILE|URL",
    f"Where Optuna keeps the study, which processes with the same one share: {opt.STORAGE}",
)
Out = opt.option("FOLDER", "For trials, best.json and pictures.")


@app.command()
def tune(
    dataset: Annotated[str | None, opt.DatasetName] = None,
    model: Annotated[str, opt.option("NAME", opt.MODEL)] = "eegnn",
    trials: Annotated[int, Trials] = 32,
    storage: Annotated[str, Storage] = "sqlite:///study.db",
    input_path: Annotated[Path | None, opt.InputPath] = None,
    epochs: Annotated[int | None, opt.Epochs] = None,
    settings: Annotated[list[str] | None, opt.Settings] = None,
    out: Annotated[Path, Out] = Path("study"),
    device: Annotated[str, opt.Device] = "cpu",
    precision: Annotated[str, opt.Precision] = "32",
    data_dir: Annotated[Path | None, opt.DataDir] = None,
    as_json: Annotated[bool, opt.AsJson] = False,
) -> None:
    """Search for good settings, in the search space of the paper; --set gives the others.

    Needs `pip install 'eegnn[tune]'`. Start the command several times to share the work; a study
    that was stopped goes on with the same command. Train with what was found with
    `eegnn train --recipe study/best.json`.
    """
    if not (dataset or input_path):
        raise typer.BadParameter("give DATASET or --input")
    compute = opt.choose_compute(device, precision)
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
