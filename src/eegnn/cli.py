"""The command line: parses, calls, prints."""

from __future__ import annotations

import json
import shlex
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from typer.core import TyperGroup


class _Commands(TyperGroup):
    """Says, after Ctrl-C, what typer does not know: that nothing is lost."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            print("eegnn: interrupted; a training run goes on with --resume", file=sys.stderr)
            raise typer.Exit(130) from None


app = typer.Typer(
    name="eegnn",
    cls=_Commands,
    help="Graph neural networks whose nodes and graphs decide when they have seen enough.",
    epilog="Start with `eegnn demo`, then `eegnn train minesweeper`.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
bench = typer.Typer(help="Measure speed, always as ratios within one run.", no_args_is_help=True)
app.add_typer(bench, name="bench")

# A flag takes no value, and its help should not ask for one: hence metavar="".
AsJson = Annotated[
    bool,
    typer.Option(
        "--json",
        metavar="",
        help="Print the result as one JSON object, the last line of standard output.",
    ),
]
DataDir = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER",
        help="Where data sets are kept.",
        show_default="EEGNN_DATA, or a cache folder",
    ),
]
DatasetName = typer.Argument(
    metavar="DATASET",
    help="A name that `eegnn datasets` lists, a generated set such as `echo-sssp@0.1` (a tenth of "
    "its full size), or a file of your own, `graph.npz`.",
    show_default=False,
)
# The list of models is not read here: it would cost the seconds that it takes to import torch.
MODEL = (
    "`eegnn`, `sasgnn`, or a baseline such as `gcn`. A name that does not exist is answered with "
    "all that do."
)
RunPath = Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")]
MaxLayers = Annotated[
    int | None,
    typer.Option(min=0, metavar="N", help="Nobody takes more steps than this."),
]
ExitThreshold = Annotated[
    float | None,
    typer.Option(
        min=0,
        max=1,
        metavar="P",
        help="Leave once the probability of having left reaches this; lower is earlier.",
        show_default="the rule it was trained with",
    ),
]
TargetCost = Annotated[
    float | None,
    typer.Option(
        min=0,
        max=1,
        metavar="SHARE",
        help="Spend this share of the budget, by the rule of `eegnn calibrate`.",
    ),
]
Seed = Annotated[int, typer.Option(min=0, metavar="N", help="The same seed, the same result.")]


@app.command()
def demo(
    size: Annotated[
        int, typer.Option(min=10, max=1000, metavar="N", help="Cells on a side of the board.")
    ] = 100,
    epochs: Annotated[int, typer.Option(min=1, metavar="N", help="Passes over the board.")] = 150,
    seed: Seed = 0,
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="Where to write the picture: .png, .pdf or .svg.")
    ] = Path("eegnn-demo.png"),
    as_json: AsJson = False,
) -> None:
    """Train EEGNN on a generated Minesweeper board and draw who left when.

    Needs no network and no data, and takes a minute or two on a laptop.
    """
    if out.suffix not in (".png", ".pdf", ".svg"):
        raise typer.BadParameter(
            f"must end in .png, .pdf or .svg, got {str(out)!r}", param_hint="--out"
        )
    out.parent.mkdir(parents=True, exist_ok=True)  # now, not after the training
    from eegnn.experiments.demo import run_demo
    from eegnn.report.board import draw_board
    from eegnn.report.terminal import demo_report

    console = Console(stderr=as_json)
    start = time.perf_counter()
    console.print(
        f"Minesweeper, {size} × {size} cells, a fifth of them mines, half of them hidden."
    )
    with _progress(epochs) as show:
        result = run_demo(size, epochs, seed, show)
    draw_board(result.data, result.score, result.exits, out)
    seconds = time.perf_counter() - start
    console.print(demo_report(result))
    console.print(f"picture           {out}   ({seconds:.0f} s in all)")
    if as_json:
        _print_json(**result.as_dict(), seed=seed, epochs=epochs, picture=str(out), seconds=seconds)


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
    epochs: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Passes over the training data.",
            show_default="the recipe's, or 1000",
        ),
    ] = None,
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
    """
    if input_file is not None:
        dataset = str(input_file)
    if not (dataset or recipe or (resume and out)):
        raise typer.BadParameter("give DATASET, --input, --recipe, or --resume with --out")
    from eegnn.report.curves import draw_curves
    from eegnn.report.tensorboard import EventFiles
    from eegnn.report.terminal import run_report
    from eegnn.train.config import parse_overrides
    from eegnn.train.results import append_result, find_result
    from eegnn.train.run import RunFolder
    from eegnn.train.start import configure, default_folder, take_up
    from eegnn.train.start import train as start

    given = {"split": split, "seed": seed, "epochs": epochs}
    overrides = {k: v for k, v in given.items() if v is not None} | parse_overrides(settings or [])
    wanted = configure(dataset, model, recipe, overrides) if dataset or recipe else None
    folder = out or default_folder(wanted)  # type: ignore[arg-type]  # one of them was given
    config, resume = take_up(wanted, folder, resume)
    console = Console(stderr=as_json)
    if results is not None and (known := find_result(results, config)) is not None:
        console.print(f"in {results} already: test {known['metric']} {known['test']:.4f}")
        if as_json:
            _print_json(**known)
        return
    events = EventFiles(folder) if tensorboard else nullcontext(lambda line: None)
    Console(stderr=True).print(
        f"{config.model} on {config.dataset}, split {config.split}: {folder}"
    )
    with events as record, _progress(config.epochs) as show:

        def on_epoch(line: dict[str, Any]) -> None:
            show(line)
            record(line)

        summary = start(config, folder, resume, data_dir, on_epoch)
    if results is not None:
        append_result(results, RunFolder(folder), shlex.join(["eegnn", *sys.argv[1:]]))
    draw_curves(folder, folder / "curves.png")
    console.print(run_report(summary, folder))
    if as_json:
        _print_json(**summary)


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
            metavar="URL",
            help="Where Optuna keeps the study; processes with the same one share the work.",
        ),
    ] = "sqlite:///study.db",
    epochs: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Passes over the training data in a trial.",
            show_default="the recipe's, or 1000",
        ),
    ] = None,
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
        _print_json(dataset=dataset, model=model, **best)


@app.command("eval")
def evaluate(
    run: RunPath,
    max_layers: MaxLayers = None,
    exit_threshold: ExitThreshold = None,
    target_cost: TargetCost = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Score the best weights of a run again, perhaps with earlier exits.

    Both knobs work without training again: they show how much of the score is left when less is
    computed.
    """
    from eegnn.train.batches import Batches
    from eegnn.train.evaluate import evaluate as score
    from eegnn.train.prepare import prepare
    from eegnn.train.run import RunFolder

    knobs = _knobs(run, max_layers, exit_threshold, target_cost, data_dir)
    folder = RunFolder(run)
    config = folder.config()
    problem = prepare(config, data_dir)
    model = folder.model()
    batches = Batches(problem, config.batch_size, model.edge_dim is not None)
    found = score(model, batches, ("train", "val", "test"), **knobs)
    fields: dict[str, Any] = {"run": str(run), "metric": problem.metric, **knobs}
    fields |= {name: part.score for name, part in found.items()}
    fields["exits"] = found["test"].exits.summary()
    fields["cost"] = float(found["test"].exits.cost)
    Console(stderr=as_json).print(
        f"{problem.metric}: train {fields['train']:.4f}  validation {fields['val']:.4f}  "
        f"test {fields['test']:.4f}   {fields['cost']:.0%} of the budget"
    )
    if as_json:
        _print_json(**fields)


@app.command()
def predict(
    run: RunPath,
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="Where to write the predictions, as .csv.")
    ],
    input_file: Annotated[
        Path | None,
        typer.Option(
            "--input",
            metavar="FILE",
            help="New graphs, as .npz.",
            show_default="the data of the run",
        ),
    ] = None,
    max_layers: MaxLayers = None,
    exit_threshold: ExitThreshold = None,
    target_cost: TargetCost = None,
    data_dir: DataDir = None,
) -> None:
    """Predict with the best weights of a run.

    Writes a line for each node or graph: prediction, probability, exit layer and exit time.
    """
    from eegnn.train.predict import predict_to_csv

    knobs = _knobs(run, max_layers, exit_threshold, target_cost, data_dir)
    count = predict_to_csv(run, out, input_file, data_dir, **knobs)
    Console(stderr=True).print(f"{count:,} predictions → {out}")


@app.command()
def calibrate(
    run: RunPath,
    cost: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            metavar="SHARE",
            help="Share of the budget.",
            show_default="a quarter, half, three quarters",
        ),
    ] = None,
    tolerance: Annotated[
        float, typer.Option(min=0, help="How much the score may fall for the cheapest rule.")
    ] = 0.0,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Find the exit rule for a budget, and the cheapest that is as good as the model's own.

    The rules are chosen on validation units, among thresholds and depth limits, and written to
    calibration.json in the folder of the run, where --target-cost of eval and predict finds them.
    """
    from eegnn.analysis.calibrate import COSTS, calibrate_run, write_calibration
    from eegnn.report.terminal import calibration_table

    costs = COSTS if cost is None else (cost,)
    found = calibrate_run(run, data_dir)
    path = write_calibration(run, found)
    console = Console(stderr=as_json)
    console.print(calibration_table(found, costs, tolerance))
    console.print(f"→ {path}")
    if as_json:
        _print_json(run=str(run), file=str(path), **found.as_dict(costs, tolerance))


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
        typer.Option(
            "--check",
            metavar="",
            help="Open those that need no network, count, and compare with the published figures; "
            "exit code 1 for a difference that is not known.",
        ),
    ] = False,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """List the data sets: what they are, where they come from, whether they are here."""
    from eegnn.report.datasets import dataset_rows, table_of

    measure = check or name is not None
    with Console(stderr=True).status("counting …") if measure else nullcontext():
        rows = dataset_rows([name] if name else None, data_dir, measure)
    console = Console(stderr=as_json)
    console.print(table_of(rows, console.width))
    if as_json:
        _print_json(datasets=rows)
    differences = [found for row in rows for found in row.get("differences") or []]
    if check and not all(found["known"] for found in differences):
        raise typer.Exit(1)


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
        _print_json(threads=threads, passes=passes, rows=[row.as_dict() for row in rows])


@contextmanager
def _progress(epochs: int) -> Iterator[Callable[[dict[str, Any]], None]]:
    """Show a bar, and yield what to call after each epoch with its line of metrics."""
    bar = Progress(
        TextColumn("training"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.description}"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
    )
    with bar:
        task = bar.add_task("", total=epochs)

        def show(line: dict[str, Any]) -> None:
            text = "loss {loss:.3f}  validation {val:.3f}  mean exit {exit_mean:.1f}"
            bar.update(task, completed=line["epoch"], description=text.format(**line))

        yield show


def _knobs(
    run: Path,
    max_layers: int | None,
    exit_threshold: float | None,
    target_cost: float | None,
    data_dir: Path | None,
) -> dict[str, Any]:
    """The exit rule that was asked for, or the one for a cost."""
    if target_cost is None:
        return {"max_layers": max_layers, "exit_threshold": exit_threshold}
    if max_layers is not None or exit_threshold is not None:
        raise typer.BadParameter(
            "goes without --max-layers and --exit-threshold: it chooses both",
            param_hint="--target-cost",
        )
    from eegnn.analysis.calibrate import calibrate_run, read_calibration

    found = read_calibration(run) or calibrate_run(run, data_dir)
    return found.for_cost(target_cost).val.knobs


def _print_json(**fields: Any) -> None:
    print(json.dumps(fields), flush=True)


def main() -> None:
    """Run the command line; a failure is one sentence and exit code 1."""
    warnings.formatwarning = lambda message, *_, **__: f"warning: {message}\n"
    try:
        app()
    except (ValueError, TypeError, OSError, ImportError, RuntimeError) as error:
        sys.exit(f"eegnn: {error}")
