"""The command line: parses, calls, prints."""

from __future__ import annotations

import json
import shlex
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

app = typer.Typer(
    name="eegnn",
    help="Graph neural networks whose nodes and graphs decide when they have seen enough.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
bench = typer.Typer(help="Measure speed, always as ratios within one run.", no_args_is_help=True)
app.add_typer(bench, name="bench")

AsJson = Annotated[
    bool, typer.Option("--json", help="Print one JSON object as the last line of standard output.")
]
DataDir = Annotated[
    Path | None,
    typer.Option(help="Data folder.  [default: EEGNN_DATA, or a cache folder]", show_default=False),
]
RunPath = Annotated[Path, typer.Argument(help="The folder of a run.")]
MaxLayers = Annotated[int | None, typer.Option(min=0, help="Nobody takes more steps than this.")]
ExitThreshold = Annotated[
    float | None,
    typer.Option(min=0, max=1, help="Leave once the probability of having left reaches this."),
]
Seed = Annotated[int, typer.Option(min=0, help="The same seed gives the same result.")]


@app.command()
def demo(
    size: Annotated[
        int, typer.Option(min=10, max=1000, help="Cells on a side of the board.")
    ] = 100,
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the board.")] = 150,
    seed: Seed = 0,
    out: Annotated[
        Path, typer.Option(help="Where to write the picture (.png, .pdf, .svg).")
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
    dataset: Annotated[
        str | None,
        typer.Argument(help="A name from `eegnn datasets`, echo-sssp@0.1, or a file.npz."),
    ] = None,
    model: Annotated[str | None, typer.Option(help="eegnn, sasgnn or gcn.")] = None,
    split: Annotated[int | None, typer.Option(min=0, help="Which split of the data.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Of weights and order.")] = None,
    epochs: Annotated[int | None, typer.Option(min=1, help="Passes over the data.")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="key=value, e.g. lr=0.003 or options.dropout=0.2. Repeatable."),
    ] = None,
    recipe: Annotated[
        Path | None, typer.Option(help="A recipe, or the config.json of a run.")
    ] = None,
    input_file: Annotated[
        Path | None, typer.Option("--input", help="Your own graph or graphs, as .npz.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the run.  [default: runs/…]", show_default=False)
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in --out.")] = False,
    results: Annotated[
        Path | None,
        typer.Option(help="Add the result to this .jsonl file; a run that is in it is not done."),
    ] = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Train a model; the test score is that of the best validation epoch.

    A recipe that comes with eegnn for the data set and the model is used where there is one.
    A run that was stopped, by Ctrl-C or worse, goes on with --resume and ends with the same
    numbers as one that was not.
    """
    if input_file is not None:
        dataset = str(input_file)
    if not (dataset or recipe or (resume and out)):
        raise typer.BadParameter("give DATASET, --input, --recipe, or --resume with --out")
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
    Console(stderr=True).print(
        f"{config.model} on {config.dataset}, split {config.split}: {folder}"
    )
    with _progress(config.epochs) as show:
        summary = start(config, folder, resume, data_dir, show)
    if results is not None:
        append_result(results, RunFolder(folder), shlex.join(["eegnn", *sys.argv[1:]]))
    console.print(run_report(summary))
    if as_json:
        _print_json(**summary)


@app.command()
def tune(
    dataset: Annotated[str, typer.Argument(help="A name from `eegnn datasets`, or a file.npz.")],
    model: Annotated[str, typer.Option(help="eegnn, sasgnn or gcn.")] = "eegnn",
    trials: Annotated[int, typer.Option(min=1, help="Size of the study, over all workers.")] = 32,
    storage: Annotated[
        str, typer.Option(help="An Optuna storage; workers with the same one share the study.")
    ] = "sqlite:///study.db",
    epochs: Annotated[int | None, typer.Option(min=1, help="Passes over the data a trial.")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="key=value for what is not searched.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for trials, best.json and pictures.")] = Path(
        "study"
    ),
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Search for settings in the paper's search space; start it several times to share the work.

    A study that was stopped goes on with the same command. The best settings end up in
    best.json, for `eegnn train --recipe`.
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
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Score a run again, perhaps with other knobs."""
    from eegnn.train.batches import Batches
    from eegnn.train.evaluate import evaluate as score
    from eegnn.train.prepare import prepare
    from eegnn.train.run import RunFolder

    folder = RunFolder(run)
    config = folder.config()
    problem = prepare(config, data_dir)
    knobs = {"max_layers": max_layers, "exit_threshold": exit_threshold}
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
    out: Annotated[Path, typer.Option(help="Where to write the predictions, as .csv.")],
    input_file: Annotated[
        Path | None, typer.Option("--input", help="New graphs, as .npz; default: the run's own.")
    ] = None,
    max_layers: MaxLayers = None,
    exit_threshold: ExitThreshold = None,
    data_dir: DataDir = None,
) -> None:
    """Write a line for each node or graph: prediction, probability, exit layer and time."""
    from eegnn.train.predict import predict_to_csv

    count = predict_to_csv(
        run, out, input_file, data_dir, max_layers=max_layers, exit_threshold=exit_threshold
    )
    Console(stderr=True).print(f"{count:,} predictions → {out}")


@app.command()
def datasets(
    name: Annotated[str | None, typer.Argument(help="One data set, with its statistics.")] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Recompute statistics against the published ones.")
    ] = False,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """List the data sets: what they are, where they come from, whether they are here."""
    from eegnn.report.datasets import dataset_rows, table_of

    rows = dataset_rows([name] if name else None, data_dir, measure=check or name is not None)
    console = Console(stderr=as_json)
    console.print(table_of(rows, console.width))
    if as_json:
        _print_json(datasets=rows)
    differences = [found for row in rows for found in row.get("differences") or []]
    if check and not all(found["known"] for found in differences):
        raise typer.Exit(1)


@bench.command("training")
def bench_training(
    threads: Annotated[int, typer.Option(min=1, help="Threads to use.")] = 1,
    passes: Annotated[int, typer.Option(min=1, help="Passes; the median counts.")] = 5,
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


def _print_json(**fields: Any) -> None:
    print(json.dumps(fields), flush=True)


def main() -> None:
    """Run the command line; a failure is one sentence and exit code 1."""
    warnings.formatwarning = lambda message, *_, **__: f"warning: {message}\n"
    try:
        app()
    except KeyboardInterrupt:
        sys.exit("eegnn: interrupted; a training run goes on with --resume")
    except (ValueError, TypeError, OSError, ImportError, RuntimeError) as error:
        sys.exit(f"eegnn: {error}")
