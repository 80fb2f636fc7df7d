"""`eegnn reproduce`."""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

import eegnn.cli.options as opt
from eegnn.cli.app import app, new_progress, print_json

if TYPE_CHECKING:
    from eegnn.compute import Compute
    from eegnn.studies.collection import ExperimentResults
    from eegnn.studies.experiment import Experiment, Finding, Scope
    from eegnn.studies.runner import Watcher
    from eegnn.studies.store import ResultStore
    from eegnn.train.config import Config

Name = typer.Argument(
    metavar="NAME", help="An experiment that --list names, or `all`.", show_default=False
)
ListAll = opt.flag("--list", "Say what there is, what it costs, and whether the data is here.")
WriteResults = opt.option(
    "FILE",
    "Write one page of all that is in the folder of results, and the NAME.csv and NAME.png of each "
    "experiment.",
    default=False,
)
Show = opt.option(
    "CELL",
    "List the runs behind cells: `GROUP, ROW, COLUMN` or a part of it, such as `EEGNN, Tolokers`. "
    "Nothing is run.",
    default=False,
)
Only = opt.option(
    "NAMES",
    "Run these models or data sets alone, such as `minesweeper,sasgnn,eegnn`.",
    default="all",
)
Splits = opt.option("N-N", "Splits, or seeds, such as `0-9` or `0,3`.", default="all")
Quick = opt.flag("--quick", "A small version, marked as such: NAME-quick.md and so on.")
Out = opt.option("FOLDER", "For NAME.jsonl (runs), NAME.md, NAME.csv, NAME.png.")
Runs = opt.option("FOLDER", "For runs that are not finished.")
Storage = opt.option(
    "FILE|URL",
    f"Share runs and results with all who have the same one: {opt.STORAGE} Needs `pip install "
    "'eegnn[tune]'`.",
    default="the folder of runs, on one machine",
)


@app.command()
def reproduce(
    name: Annotated[str | None, Name] = None,
    list_all: Annotated[bool, ListAll] = False,
    write_results: Annotated[Path | None, WriteResults] = None,
    show: Annotated[str | None, Show] = None,
    only: Annotated[str | None, Only] = None,
    splits: Annotated[str | None, Splits] = None,
    quick: Annotated[bool, Quick] = False,
    out: Annotated[Path, Out] = Path("results"),
    runs: Annotated[Path, Runs] = Path("runs"),
    storage: Annotated[str | None, Storage] = None,
    device: Annotated[str, opt.Device] = "cpu",
    precision: Annotated[str, opt.Precision] = "32",
    data_dir: Annotated[Path | None, opt.DataDir] = None,
    as_json: Annotated[bool, opt.AsJson] = False,
) -> None:
    """Repeat a table or figure of the paper, with its numbers beside ours.

    A run that is in the folder of results, in any of its .jsonl files, is not done again, on
    whatever device it was done. After Ctrl-C the same command goes on. Start it several times to
    share the work, on several machines with --storage.
    """
    if (name is not None) + list_all + (write_results is not None) != 1:
        raise typer.BadParameter("give one of NAME, --list and --write-results")
    if show is not None and name in (None, "all"):
        raise typer.BadParameter("needs the name of one experiment", param_hint="--show")
    from eegnn.experiments import registry
    from eegnn.studies.experiment import Scope

    scope = Scope(quick, _parse_numbers(splits))
    console = Console(stderr=as_json)
    if write_results is not None:
        _write_results(write_results, out, console)
    elif show is not None:
        cells = _show(registry.find(str(name)), show, scope, out, console)
        if as_json:
            print_json(cells=cells)
    elif list_all:
        rows = [_describe(each, scope, out, data_dir) for each in registry.by_cost(quick)]
        _print_list(rows, console)
        if as_json:
            print_json(experiments=rows)
    else:
        compute = opt.choose_compute(device, precision)
        session = _Session(scope, out, runs, storage, data_dir, console, compute)
        chosen = registry.by_cost(quick) if name == "all" else [registry.find(str(name))]
        done = [session.reproduce(each, only, fetch=name != "all") for each in chosen]
        found = [result for result in done if result is not None]
        if not found and name != "all":
            raise typer.Exit(1)
        if as_json:
            print_json(**({"experiments": found} if name == "all" else found[0]))


@dataclass(frozen=True)
class _Session:
    """What all experiments of a command share; see the options of the command."""

    scope: Scope
    out: Path
    runs: Path
    storage: str | None
    data_dir: Path | None
    console: Console
    compute: Compute

    def reproduce(
        self, experiment: Experiment, only: str | None, fetch: bool
    ) -> dict[str, Any] | None:
        """Do the runs, write the pages, and return both for programs; nothing without data.

        Args:
            experiment: which.
            only: names of models and data sets to which runs are restricted.
            fetch: try to get data that is not here.
        """
        configs = _select(experiment.configs(self.scope), only)
        available = self._available(experiment, configs, fetch)
        if configs and not available:
            return None
        from eegnn.studies.pages import table_rows, write_pages
        from eegnn.studies.store import ResultStore

        store = ResultStore.of(experiment, self.scope, self.out)
        left = self._run(experiment, available, store)
        results = _results(experiment, self.scope, self.out)
        files = write_pages(results, self.scope, self.out)
        findings = experiment.judge(results.table)
        self.console.print(f"{experiment.title}: {', '.join(map(str, files))}")
        if left:
            self.console.print(f"{len(left)} of {len(available)} runs are with other processes")
        _print_findings(findings, self.console)
        return {
            "name": experiment.name,
            "quick": self.scope.quick,
            "runs": len(available),
            "left": len(left),
            "cells": table_rows(results.table),
            "findings": [finding._asdict() for finding in findings],
            "files": [str(path) for path in files],
        }

    def _available(
        self, experiment: Experiment, configs: list[Config], fetch: bool
    ) -> list[Config]:
        """Return the runs whose data is here, or could be fetched."""
        from eegnn.experiments.registry import missing_data

        absent = missing_data(configs, self.data_dir)
        if fetch:
            absent = [name for name in absent if not _fetch(name, self.data_dir, self.console)]
        if absent:
            self.console.print(f"{experiment.name}: {', '.join(absent)} not here, left out")
        return [config for config in configs if config.dataset not in absent]

    def _run(
        self, experiment: Experiment, configs: list[Config], store: ResultStore
    ) -> list[Config]:
        """Do the runs, and return those that other processes do."""
        from eegnn.studies.runner import Runner

        if not configs:
            return []
        try:
            with _progress_bar(experiment.name, configs, store) as watch:
                options = (experiment.measurement, watch, self.compute)
                runner = Runner(store, self.runs, self.data_dir, *options)
                return runner.run(configs, self.storage)
        except KeyboardInterrupt:
            print("eegnn: interrupted; the same command goes on where it was", file=sys.stderr)
            raise typer.Exit(130) from None


def _select(configs: list[Config], names: str | None) -> list[Config]:
    """Keep the runs of the named models, and of the named data sets."""
    if names is None:
        return configs
    from eegnn.train.models import NAMES

    words = {word.strip() for word in names.split(",")}
    datasets = {config.dataset.partition("@")[0] for config in configs}
    if unknown := sorted(words - datasets - NAMES.keys()):
        raise typer.BadParameter(
            f"must be models or data sets of the experiment ({', '.join(sorted(datasets))}), got "
            f"{unknown[0]!r}",
            param_hint="--only",
        )
    models, datasets = words & NAMES.keys(), words & datasets or datasets
    return [
        config
        for config in configs
        if (not models or config.model in models) and config.dataset.partition("@")[0] in datasets
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


def _print_findings(findings: Sequence[Finding], console: Console) -> None:
    from eegnn.studies.pages import describe_finding

    for finding in findings:
        if finding.so_far is not None:
            console.print(describe_finding(finding).replace("*", ""), highlight=False, markup=False)
    if undecided := sum(finding.so_far is None for finding in findings):
        console.print(f"open, for want of runs: {undecided} of {len(findings)} statements")


@contextmanager
def _progress_bar(name: str, configs: list[Config], store: ResultStore) -> Iterator[Watcher]:
    """Show a bar of finished runs, whichever process does them, and yield what updates it."""
    with new_progress(name) as bar:
        task = bar.add_task("", total=len(configs))

        def show_count(text: str) -> None:
            done = len(configs) - len(store.missing(configs))
            bar.update(task, completed=done, description=text)

        def watch(config: Config, metrics: dict[str, Any] | None) -> None:
            text = f"{config.dataset} {config.model} L={config.num_layers} split {config.split}"
            if metrics is None:
                show_count(text)
            else:
                epoch = f"{metrics['epoch']}/{config.epochs}"
                bar.update(task, description=f"{text} epoch {epoch} val {metrics['val']:.3f}")

        yield watch
        show_count("")


def _results(experiment: Experiment, scope: Scope, folder: Path) -> ExperimentResults:
    """Return what there is of an experiment; of the full version, whichever splits were run."""
    from eegnn.experiments import registry
    from eegnn.studies.collection import ExperimentResults, collect
    from eegnn.studies.store import ResultStore

    if scope.quick:
        store = ResultStore.of(experiment, scope, folder)
        return ExperimentResults(experiment, store.results(experiment.cells(scope)))
    found = collect(map(registry.find, registry.EXPERIMENTS), folder).results
    return next(each for each in found if each.experiment.name == experiment.name)


def _show(
    experiment: Experiment, text: str, scope: Scope, folder: Path, console: Console
) -> list[dict[str, Any]]:
    """List the runs behind the cells whose names contain the text."""
    from eegnn.studies.markdown import format_result, place_of
    from eegnn.studies.pages import trace

    results = _results(experiment, scope, folder)
    table = [r for r in (*results.table, *results.superseded) if r.mean is not None]
    chosen = [result for result in table if text.lower() in place_of(result).lower()]
    if not chosen:
        near = difflib.get_close_matches(text, map(place_of, table), n=3, cutoff=0)
        hint = f"did you mean {' or '.join(map(repr, near))}?" if near else "nothing was run"
        raise ValueError(f"no number of {experiment.name} is called {text!r}: {hint}")
    for result in chosen:
        old = f" (superseded: {result.superseded})" if result.superseded else ""
        value = f"{result.cell.quantity.name} {format_result(result)}"
        console.print(f"{place_of(result)}: {value}{old}", highlight=False, markup=False)
        for run in trace(result)["runs"]:
            line = "  {value:.6g} split {split} seed {seed} commit {commit} {source}: {command}"
            console.print(line.format(**run), highlight=False, markup=False, soft_wrap=True)
    return [trace(result) for result in chosen]


def _write_results(page: Path, folder: Path, console: Console) -> None:
    """Write one page of all experiments, from the folder of results alone."""
    from eegnn.experiments import registry
    from eegnn.io import write_atomically
    from eegnn.studies.collection import collect
    from eegnn.studies.pages import write_files
    from eegnn.studies.results_page import results_page

    found = collect(map(registry.find, registry.EXPERIMENTS), folder)
    for each in found.results:
        if each.has_numbers:
            write_files(each, each.experiment.name, folder)
    way = Path(os.path.relpath(folder, page.parent)).as_posix()
    write_atomically(page, results_page(found, way).encode())
    console.print(f"{page}, and NAME.csv and NAME.png in {folder}")


def _describe(
    experiment: Experiment, scope: Scope, out: Path, data_dir: Path | None
) -> dict[str, Any]:
    """Return what `--list` says of an experiment."""
    from eegnn.experiments.registry import missing_data
    from eegnn.studies.costs import cost
    from eegnn.studies.store import ResultStore

    configs, store = experiment.configs(scope), ResultStore.of(experiment, scope, out)
    records = [record for config in configs if (record := store.find(config))]
    finished = [record for record in records if "failed" not in record]
    return {
        "name": experiment.name,
        "title": experiment.title,
        **cost(configs, finished)._asdict(),
        "estimate": experiment.minutes[scope.quick],
        "done": len(records),
        "missing": missing_data(configs, data_dir),
        "needs": experiment.needs,
        "command": scope.command(experiment.name),
    }


def _print_list(rows: list[dict[str, Any]], console: Console) -> None:
    """Print a line of at most 80 columns each, and commands for machines that have more."""
    from eegnn.studies.costs import Cost

    caption = "minutes: of one core; + not all data sets and models timed, ~ estimated"
    table = Table(box=None, pad_edge=False, expand=True, caption=caption)
    table.add_column("name", width=max(len(row["name"]) for row in rows))
    table.add_column("what", no_wrap=True, ratio=1)
    for heading, width in (("minutes", 8), ("done", 7)):
        table.add_column(heading, justify="right", width=width)
    table.add_column("data", width=7)
    for row in rows:
        table.add_row(
            row["name"],
            row["title"],
            Cost(row["minutes"], row["timed"], row["runs"]).describe(row["estimate"]),
            f"{row['done']}/{row['runs']}" if row["runs"] else "no runs",
            "not all" if row["missing"] else "here",
        )
    console.print(table)
    for row in rows:
        wants = [*row["missing"], *([row["needs"]] if row["needs"] else [])]
        if wants:
            console.print(f"Elsewhere, with {', '.join(wants)}: {row['command']}", highlight=False)


def _parse_numbers(text: str | None) -> tuple[int, ...] | None:
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
