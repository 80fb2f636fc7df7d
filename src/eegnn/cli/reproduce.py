"""`eegnn reproduce`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from eegnn.cli.app import app, print_json
from eegnn.cli.options import AsJson, DataDir

if TYPE_CHECKING:
    from eegnn.experiments.book import Book
    from eegnn.experiments.runner import Watcher
    from eegnn.experiments.study import Experiment, Plan
    from eegnn.train.config import Config


@app.command()
def reproduce(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME", help="An experiment that --list names, or `all`.", show_default=False
        ),
    ] = None,
    list_all: Annotated[
        bool,
        typer.Option(
            "--list",
            metavar="",
            help="Say what there is, what it costs, and whether the data is here.",
        ),
    ] = False,
    splits: Annotated[
        str | None,
        typer.Option(
            metavar="N-N", help="Splits, or seeds, such as `0-9` or `0,3`.", show_default="all"
        ),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick", metavar="", help="A small version, marked as such: NAME-quick.md and so on."
        ),
    ] = False,
    out: Annotated[
        Path,
        typer.Option(metavar="FOLDER", help="For NAME.jsonl (runs), NAME.md, NAME.csv, NAME.png."),
    ] = Path("results"),
    runs: Annotated[
        Path, typer.Option(metavar="FOLDER", help="For runs that are not finished.")
    ] = Path("runs"),
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Repeat a table or figure of the paper, with its numbers beside ours.

    A run that is in the folder of results, in any of its .jsonl files, is not done again. After
    Ctrl-C the same command goes on. Start it several times to share the work.
    """
    if (name is None) == (not list_all):
        raise typer.BadParameter("give NAME or --list")
    from eegnn.experiments import registry
    from eegnn.experiments.study import Plan

    plan = Plan(quick, _numbers(splits))
    console = Console(stderr=as_json)
    chosen = registry.by_cost(quick) if name in (None, "all") else [registry.find(str(name))]
    if list_all:
        rows = [_row(experiment, plan, out, data_dir) for experiment in chosen]
        console.print(_list(rows))
        if as_json:
            print_json(experiments=rows)
        return
    done = []
    for experiment in chosen:
        absent = registry.missing_data(experiment, plan, data_dir)
        if name == "all" and absent:
            console.print(f"{experiment.name}: left out, {', '.join(absent)} not here")
            continue
        done.append(_reproduce(experiment, plan, out, runs, data_dir, console))
    if as_json:
        print_json(**({"experiments": done} if name == "all" else done[0]))


def _reproduce(
    experiment: Experiment,
    plan: Plan,
    out: Path,
    runs: Path,
    data_dir: Path | None,
    console: Console,
) -> dict[str, Any]:
    from eegnn.experiments.book import Book
    from eegnn.experiments.runner import do_runs, measure
    from eegnn.report.study import MARKS, file_name, study_rows, write_study

    configs = experiment.configs(plan)
    book = Book(out, file_name(experiment, plan))
    left: list[Config] = []
    try:
        if configs:
            with _bar(experiment.name, configs, book) as watch:
                left = do_runs(
                    configs, book, runs / experiment.name, data_dir, watch, experiment.keep_runs
                )
    except KeyboardInterrupt:
        print("eegnn: interrupted; the same command goes on where it was", file=sys.stderr)
        raise typer.Exit(130) from None
    table = measure(experiment.cells(plan), book)
    files = write_study(experiment, plan, table, out)
    findings = experiment.findings(table)
    console.print(f"{experiment.title}: {', '.join(map(str, files))}")
    if left:
        console.print(f"{len(left)} of {len(configs)} runs are with other processes")
    for text, holds in findings:
        console.print(f"{MARKS[holds]}: {text}", highlight=False)
    return {
        "name": experiment.name,
        "quick": plan.quick,
        "runs": len(configs),
        "left": len(left),
        "cells": study_rows(table),
        "findings": [finding._asdict() for finding in findings],
        "files": [str(path) for path in files],
    }


@contextmanager
def _bar(name: str, configs: list[Config], book: Book) -> Iterator[Watcher]:
    """Show a bar of runs, whoever does them, and yield what to call as they go on."""
    bar = Progress(
        TextColumn(name),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.description}"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
    )
    with bar:
        task = bar.add_task("", total=len(configs))

        def watch(config: Config, line: dict[str, Any] | None) -> None:
            text = f"{config.dataset} {config.model} L={config.num_layers} split {config.split}"
            if line is None:
                done = sum(map(book.has, configs))
                bar.update(task, completed=done, description=text)
            else:
                epoch = f"{line['epoch']}/{config.epochs}"
                bar.update(task, description=f"{text} epoch {epoch} val {line['val']:.3f}")

        yield watch
        bar.update(task, completed=sum(map(book.has, configs)), description="")


def _row(experiment: Experiment, plan: Plan, out: Path, data_dir: Path | None) -> dict[str, Any]:
    from eegnn.experiments.book import Book
    from eegnn.experiments.registry import missing_data
    from eegnn.report.study import file_name

    book = Book(out, file_name(experiment, plan))
    configs = experiment.configs(plan)
    return {
        "name": experiment.name,
        "title": experiment.title,
        "minutes": experiment.minutes[0],
        "quick_minutes": experiment.minutes[1],
        "runs": len(configs),
        "done": sum(map(book.has, configs)),
        "missing": missing_data(experiment, plan, data_dir),
    }


def _list(rows: list[dict[str, Any]]) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in ("name", "what", "minutes of a core", "quick", "runs done", "data"):
        table.add_column(heading)
    for row in rows:
        table.add_row(
            row["name"],
            row["title"],
            f"{row['minutes']:g}",
            f"{row['quick_minutes']:g}",
            f"{row['done']} of {row['runs']}" if row["runs"] else "no training",
            f"not here: {', '.join(row['missing'])}" if row["missing"] else "here",
        )
    return table


def _numbers(text: str | None) -> tuple[int, ...] | None:
    """Read ``0-9`` or ``0,3``."""
    if text is None:
        return None
    numbers: list[int] = []
    try:
        for part in text.split(","):
            first, _, last = part.partition("-")
            numbers += range(int(first), int(last or first) + 1)
    except ValueError:
        numbers = []
    if not numbers or min(numbers) < 0:
        raise typer.BadParameter(f"must be such as 0-9 or 0,3, got {text!r}", param_hint="--splits")
    return tuple(dict.fromkeys(numbers))
