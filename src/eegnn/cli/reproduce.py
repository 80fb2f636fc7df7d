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
from eegnn.cli.options import STORAGE, AsJson, DataDir

if TYPE_CHECKING:
    from eegnn.studies.runner import Watcher
    from eegnn.studies.store import Book
    from eegnn.studies.study import Experiment, Plan
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
    write_results: Annotated[
        Path | None,
        typer.Option(
            "--write-results",
            metavar="FILE",
            help="Write one page of all that is in the folder of results.",
            show_default=False,
        ),
    ] = None,
    only: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="Run these models or data sets alone, such as `minesweeper,sasgnn,eegnn`.",
            show_default="all",
        ),
    ] = None,
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
    storage: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|URL",
            help="Share runs and results with all who have the same one: " + STORAGE + " Needs "
            "`pip install 'eegnn[tune]'`.",
            show_default="the folder of runs, on one machine",
        ),
    ] = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Repeat a table or figure of the paper, with its numbers beside ours.

    A run that is in the folder of results, in any of its .jsonl files, is not done again. After
    Ctrl-C the same command goes on. Start it several times to share the work, on several machines
    with --storage.
    """
    if (name is not None) + list_all + (write_results is not None) != 1:
        raise typer.BadParameter("give one of NAME, --list and --write-results")
    from eegnn.experiments import registry
    from eegnn.studies.study import Plan

    plan = Plan(quick, _numbers(splits))
    console = Console(stderr=as_json)
    if write_results is not None:
        _write_results(write_results, out, data_dir, console)
        return
    chosen = registry.by_cost(quick) if name in (None, "all") else [registry.find(str(name))]
    if list_all:
        rows = [_row(experiment, plan, out, data_dir) for experiment in chosen]
        console.print(_list(rows))
        _print_elsewhere(rows, console)
        if as_json:
            print_json(experiments=rows)
        return
    done = []
    for experiment in chosen:
        configs = _only(experiment.configs(plan), only)
        absent = registry.missing_data(configs, data_dir)
        if name != "all":
            absent = [each for each in absent if not _fetch(each, data_dir, console)]
        here = [config for config in configs if config.dataset not in absent]
        if absent:
            console.print(f"{experiment.name}: {', '.join(absent)} not here, left out")
            if not here:
                continue
        done.append(_reproduce(experiment, plan, here, out, runs, storage, data_dir, console))
    if not done and name != "all":
        raise typer.Exit(1)
    if as_json:
        print_json(**({"experiments": done} if name == "all" else done[0]))


def _only(configs: list[Config], names: str | None) -> list[Config]:
    """Keep the runs of the named models, and of the named data sets."""
    if names is None:
        return configs
    from eegnn.train.models import NAMES

    words = {word.strip() for word in names.split(",")}
    sets = {config.dataset.partition("@")[0] for config in configs}
    if unknown := sorted(words - sets - NAMES.keys()):
        raise typer.BadParameter(
            f"must be models or data sets of the experiment ({', '.join(sorted(sets))}), got "
            f"{unknown[0]!r}",
            param_hint="--only",
        )
    models, data = words & NAMES.keys(), words & sets
    return [
        config
        for config in configs
        if (not models or config.model in models)
        and (not data or config.dataset.partition("@")[0] in data)
    ]


def _fetch(dataset: str, data_dir: Path | None, console: Console) -> bool:
    """Try to get a data set; say why where it does not work."""
    from eegnn.data.open import open_problem

    try:
        open_problem(dataset, 0, data_dir)
    except (OSError, ImportError) as error:
        console.print(str(error), highlight=False)
        return False
    return True


def _write_results(page: Path, folder: Path, data_dir: Path | None, console: Console) -> None:
    from eegnn.experiments import registry
    from eegnn.io import write_atomically
    from eegnn.studies.results_page import Study, count, distinct, results_page
    from eegnn.studies.runner import measure
    from eegnn.studies.study import Plan

    studies = []
    for name in registry.EXPERIMENTS:
        experiment = registry.find(name)
        cells = experiment.cells(Plan())
        missing = registry.missing_data([c for cell in cells for c in cell.configs], data_dir)
        studies.append(
            Study(experiment, measure(cells, _book(experiment, Plan(), folder)), missing)
        )
    write_atomically(page, results_page(studies).encode())
    found = count(distinct(studies))
    console.print(f"{page}: {found['from runs']} of {found['cells']} cells are from runs")


def _book(experiment: Experiment, plan: Plan, folder: Path) -> Book:
    from eegnn.studies.page import file_name
    from eegnn.studies.store import Book

    field = None if experiment.measurement is None else experiment.measurement.field
    return Book(folder, file_name(experiment, plan), field)


def _reproduce(
    experiment: Experiment,
    plan: Plan,
    configs: list[Config],
    out: Path,
    runs: Path,
    storage: str | None,
    data_dir: Path | None,
    console: Console,
) -> dict[str, Any]:
    from eegnn.studies.page import MARKS, study_rows, write_study
    from eegnn.studies.runner import do_runs, measure

    book = _book(experiment, plan, out)
    left: list[Config] = []
    try:
        if configs:
            with _bar(experiment.name, configs, book) as watch:
                left = do_runs(
                    configs,
                    book,
                    runs / experiment.name,
                    data_dir,
                    watch,
                    experiment.keep_runs,
                    experiment.measurement,
                    storage,
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
        if holds is not None:
            console.print(f"{MARKS[holds]}: {text}", highlight=False)
    if waiting := sum(finding.holds is None for finding in findings):
        console.print(f"{MARKS[None]}: {waiting} of {len(findings)} statements")
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
    from eegnn.experiments.registry import missing_data

    book = _book(experiment, plan, out)
    configs = experiment.configs(plan)
    return {
        "name": experiment.name,
        "title": experiment.title,
        "minutes": experiment.minutes[0],
        "quick_minutes": experiment.minutes[1],
        "runs": len(configs),
        "done": sum(map(book.has, configs)),
        "missing": missing_data(configs, data_dir),
        "needs": experiment.needs,
        "command": plan.command(experiment.name),
    }


def _print_elsewhere(rows: list[dict[str, Any]], console: Console) -> None:
    """Say what to type where there is what this machine has not."""
    for row in rows:
        wants = [*row["missing"], *([row["needs"]] if row["needs"] else [])]
        if wants:
            console.print(f"Elsewhere, with {', '.join(wants)}: {row['command']}", highlight=False)


def _list(rows: list[dict[str, Any]]) -> Table:
    """One line each on 80 columns; which data are missing stands below."""
    table = Table(box=None, pad_edge=False, expand=True, caption="minutes: of one core")
    table.add_column("name", width=max(len(row["name"]) for row in rows))
    table.add_column("what", no_wrap=True, ratio=1)
    for heading, width in (("minutes", 7), ("quick", 5), ("done", 7)):
        table.add_column(heading, justify="right", width=width)
    table.add_column("data", width=7)
    for row in rows:
        table.add_row(
            row["name"],
            row["title"],
            f"{row['minutes']:g}",
            f"{row['quick_minutes']:g}",
            f"{row['done']}/{row['runs']}" if row["runs"] else "no runs",
            "not all" if row["missing"] else "here",
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
