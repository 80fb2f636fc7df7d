"""`eegnn train`."""

from __future__ import annotations

from contextlib import nullcontext
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

import eegnn.cli.options as opt
from eegnn.cli.app import app, command_line, print_json, progress_bar

if TYPE_CHECKING:
    from eegnn.compute import Compute
    from eegnn.distributed import Ranks
    from eegnn.train.config import Config

Model = opt.option("NAME", opt.MODEL, default="eegnn")
Split = opt.option(
    "N",
    "Which split into training, validation and test part; of a generated set, its seed.",
    default="0",
    min=0,
)
Seed = opt.option(
    "N",
    "Of the first weights, dropout and the order of batches. The same seed, the same numbers.",
    default="0",
    min=0,
)
Recipe = opt.option(
    "FILE",
    "Settings from a .toml file, or the config.json of another run.",
    default="the one for this data set and model, if there is one",
)
Out = opt.option("FOLDER", "Folder of the run.", default="runs/DATASET-MODEL-splitN-seedN")
Resume = opt.flag("--resume", "Go on with the run in the folder, if any.")
Results = opt.option(
    "FILE", "Add the result to this .jsonl file; a run that is in it already is not trained."
)
Trackers = StrEnum("Trackers", ["tensorboard", "wandb", "mlflow", "csv"])
Track = opt.option(
    "NAME",
    "Show each epoch in a tracker too: `tensorboard`, `wandb`, `mlflow` or `csv`. It needs no "
    "network, unless WANDB_MODE or MLFLOW_TRACKING_URI says so.",
)


@app.command()
def train(
    dataset: Annotated[str | None, opt.DatasetName] = None,
    model: Annotated[str | None, Model] = None,
    split: Annotated[int | None, Split] = None,
    seed: Annotated[int | None, Seed] = None,
    epochs: Annotated[int | None, opt.Epochs] = None,
    settings: Annotated[list[str] | None, opt.Settings] = None,
    recipe: Annotated[Path | None, Recipe] = None,
    input_path: Annotated[Path | None, opt.InputPath] = None,
    out: Annotated[Path | None, Out] = None,
    resume: Annotated[bool, Resume] = False,
    results: Annotated[Path | None, Results] = None,
    track: Annotated[Trackers | None, Track] = None,
    device: Annotated[str, opt.Device] = "cpu",
    precision: Annotated[str, opt.Precision] = "32",
    data_dir: Annotated[Path | None, opt.DataDir] = None,
    as_json: Annotated[bool, opt.AsJson] = False,
) -> None:
    """Train a model, and report the test score of its best validation epoch.

    Settings are the defaults, then those of the recipe that comes with eegnn for this data set and
    model, then what you give here.

    The run is a folder with the settings, a line of figures for each epoch (metrics.jsonl), the
    learning curves (curves.png) and the best weights, for `eegnn eval` and `eegnn predict`. A run
    that was stopped, by Ctrl-C or worse, goes on with --resume and ends with the same numbers as
    one that was not.

    Started with `torchrun --nproc-per-node=N -m eegnn train`, N processes share the graphs of each
    batch.
    """
    if not (dataset or input_path or recipe or (resume and out)):
        raise typer.BadParameter("give DATASET, --input, --recipe, or --resume with --out")
    compute = opt.choose_compute(device, precision)
    from eegnn.data.open import as_path
    from eegnn.distributed import join
    from eegnn.train.config import parse_overrides
    from eegnn.train.results import find_result
    from eegnn.train.run import RunFolder
    from eegnn.train.start import configure, default_folder

    dataset = as_path(input_path) if input_path else dataset
    overrides = parse_overrides(settings, split=split, seed=seed, epochs=epochs)
    wanted = configure(dataset, model, recipe, overrides) if dataset or recipe else None
    folder = out or default_folder(wanted)  # type: ignore[arg-type]  # one of them was given
    ranks, console = join(compute.device.type), Console(stderr=as_json)
    config = wanted or ranks.on_main(RunFolder(folder).config)
    summary = ranks.on_main(lambda: None if results is None else find_result(results, config))
    if summary is not None:
        console.print(f"in {results} already: test {summary['metric']} {summary['test']:.4f}")
    else:
        summary = _train(config, folder, resume, data_dir, track, ranks, compute)
        if ranks.is_main:
            _report(summary, folder, results, console)
    if as_json:
        print_json(**summary)


def _train(
    config: Config,
    folder: Path,
    resume: bool,
    data_dir: Path | None,
    track: Trackers | None,
    ranks: Ranks,
    compute: Compute,
) -> dict[str, Any]:
    """Train with a progress bar and, if asked for, a tracker; return the summary."""
    from eegnn.train.start import train
    from eegnn.train.track import Tracker

    Console(stderr=True).print(
        f"{config.model} on {config.dataset}, split {config.split}: {folder}"
    )
    nowhere = nullcontext(lambda line: None)
    tracker = Tracker(track, folder) if track and ranks.is_main else nowhere
    with tracker as record, progress_bar(config.epochs) as show:

        def on_epoch(line: dict[str, Any]) -> None:
            show(line)
            record(line)

        return train(config, folder, resume, data_dir, on_epoch, ranks, compute)


def _report(summary: dict[str, Any], folder: Path, results: Path | None, console: Console) -> None:
    """Record a finished run, draw its learning curves, and print its figures."""
    from eegnn.report.curves import draw_curves
    from eegnn.report.terminal import run_report
    from eegnn.train.results import append_result
    from eegnn.train.run import RunFolder

    if results is not None:
        append_result(results, RunFolder(folder), command_line())
    draw_curves(folder, folder / "curves.png")
    console.print(run_report(summary, folder))
