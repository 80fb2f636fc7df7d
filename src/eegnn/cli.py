"""The command line: parses, calls, prints."""

from __future__ import annotations

import json
import sys
import time
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
    from eegnn.report.terminal import exit_histogram

    console = Console(stderr=as_json)
    start = time.perf_counter()
    console.print(
        f"Minesweeper, {size} × {size} cells, a fifth of them mines, half of them hidden."
    )
    with _progress() as progress:
        task = progress.add_task("training", total=epochs, loss=0.0, val=0.0, layer=0.0)
        result = run_demo(
            size,
            epochs,
            seed,
            lambda epoch, loss, val, exits: progress.update(
                task,
                completed=epoch,
                loss=loss,
                val=val,
                layer=float(exits.layer.double().mean()),
            ),
        )
    draw_board(result.data, result.score, result.exits, out)
    seconds = time.perf_counter() - start

    exits = result.exits
    console.print(f"\nWho left when (of {exits.layer.numel():,} nodes, budget {exits.num_layers}):")
    console.print(exit_histogram(exits))
    console.print(
        f"\ntest ROC AUC      {result.test:.4f}   (validation {result.val:.4f}, "
        f"epoch {result.best_epoch})"
        f"\nat full depth     {result.test_full_depth:.4f}"
        f"\ntime with exits   {1e3 * result.seconds_with_exits:.1f} ms a pass, "
        f"{float(exits.cost):.0%} of the node updates"
        f"\ntime without      {1e3 * result.seconds_full_depth:.1f} ms a pass"
        f"\npicture           {out}   ({seconds:.0f} s in all)"
    )
    if as_json:
        _print_json(
            dataset="minesweeper-generated",
            model="eegnn",
            seed=seed,
            epochs=epochs,
            best_epoch=result.best_epoch,
            metric="roc_auc",
            val=result.val,
            test=result.test,
            test_full_depth=result.test_full_depth,
            params=sum(p.numel() for p in result.model.parameters()),
            exits=exits.summary(),
            seconds_with_exits=result.seconds_with_exits,
            seconds_full_depth=result.seconds_full_depth,
            picture=str(out),
            seconds=seconds,
        )


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


def _progress() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(
            "loss {task.fields[loss]:.3f}  validation {task.fields[val]:.3f}  "
            "mean exit {task.fields[layer]:.1f}"
        ),
        TimeRemainingColumn(),
        console=Console(stderr=True),
    )


def _print_json(**fields: Any) -> None:
    print(json.dumps(fields), flush=True)


def main() -> None:
    """Run the command line; a failure is one sentence and exit code 1."""
    try:
        app()
    except KeyboardInterrupt:
        sys.exit("eegnn: interrupted")
    except (ValueError, TypeError, OSError, ImportError) as error:
        sys.exit(f"eegnn: {error}")
