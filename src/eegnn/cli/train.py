"""`eegnn train`."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from eegnn.cli.app import app, command_line, print_json, progress_bar
from eegnn.cli.options import MODEL, AsJson, DataDir, DatasetName, Epochs


@app.command()
def train(
    dataset: Annotated[str | None, DatasetName] = None,
    model: Annotated[
        str | None, typer.Option(metavar="NAME", help=MODEL, show_default="eegnn")
    ] = None,
    split: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="N",
            help="Which split into training, validation and test part; of a generated set, its "
            "seed.",
            show_default="0",
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="N",
            help="Of the first weights, dropout and the order of batches. The same seed, the same "
            "numbers.",
            show_default="0",
        ),
    ] = None,
    epochs: Epochs = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="A setting, as in `lr=0.003`, or an argument of the model, as in "
            "`options.dropout=0.2`. Repeat it for more; an unknown key is answered with all that "
            "exist.",
        ),
    ] = None,
    recipe: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Settings from a .toml file, or the config.json of another run.",
            show_default="the one for this data set and model, if there is one",
        ),
    ] = None,
    input_file: Annotated[
        Path | None,
        typer.Option(
            "--input", metavar="FILE", help="Your own graph or graphs, as .npz, for DATASET."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Folder of the run.",
            show_default="runs/DATASET-MODEL-splitN-seedN",
        ),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option("--resume", metavar="", help="Go on with the run in the folder, if any."),
    ] = False,
    results: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Add the result to this .jsonl file; a run that is in it already is not trained.",
        ),
    ] = None,
    tensorboard: Annotated[
        bool,
        typer.Option(
            "--tensorboard",
            metavar="",
            help="Write TensorBoard event files too, into RUN/tensorboard. Needs "
            "`pip install 'eegnn[tensorboard]'`.",
        ),
    ] = False,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Train a model, and report the test score of its best validation epoch.

    Settings are the defaults, then those of the recipe that comes with eegnn for this data set and
    model, then what you give here.

    The run is a folder with the settings, a line of figures for each epoch (metrics.jsonl), the
    learning curves (curves.png) and the best weights, for `eegnn eval` and `eegnn predict`. A run
    that was stopped, by Ctrl-C or worse, goes on with --resume and ends with the same numbers as
    one that was not.

    Started with `torchrun --nproc-per-node=N -m eegnn train`, N processes share the graphs of each
    batch; needs `pip install 'eegnn[distributed]'`.
    """
    if input_file is not None:
        dataset = str(input_file)
    if not (dataset or recipe or (resume and out)):
        raise typer.BadParameter("give DATASET, --input, --recipe, or --resume with --out")
    from eegnn.report.curves import draw_curves
    from eegnn.report.tensorboard import EventFiles
    from eegnn.report.terminal import run_report
    from eegnn.train.config import parse_overrides
    from eegnn.train.distributed import join
    from eegnn.train.results import append_result, find_result
    from eegnn.train.run import RunFolder
    from eegnn.train.start import configure, default_folder, take_up
    from eegnn.train.start import train as start

    given = {"split": split, "seed": seed, "epochs": epochs}
    overrides = {k: v for k, v in given.items() if v is not None} | parse_overrides(settings or [])
    wanted = configure(dataset, model, recipe, overrides) if dataset or recipe else None
    folder = out or default_folder(wanted)  # type: ignore[arg-type]  # one of them was given
    ranks = join()
    config, resume = ranks.first(lambda: take_up(wanted, folder, resume))
    console = Console(stderr=as_json)
    known = ranks.first(lambda: None if results is None else find_result(results, config))
    if known is not None:
        console.print(f"in {results} already: test {known['metric']} {known['test']:.4f}")
        if as_json:
            print_json(**known)
        return
    quiet = nullcontext(lambda line: None)
    events = EventFiles(folder) if tensorboard and ranks.leads else quiet
    Console(stderr=True).print(
        f"{config.model} on {config.dataset}, split {config.split}: {folder}"
    )
    with events as record, progress_bar(config.epochs) as show:

        def on_epoch(line: dict[str, Any]) -> None:
            show(line)
            record(line)

        summary = start(config, folder, resume, data_dir, on_epoch, ranks)
    if not ranks.leads:
        return
    if results is not None:
        append_result(results, RunFolder(folder), command_line())
    draw_curves(folder, folder / "curves.png")
    console.print(run_report(summary, folder))
    if as_json:
        print_json(**summary)
