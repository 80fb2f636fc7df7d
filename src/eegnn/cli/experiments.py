"""What `eegnn reproduce` does; imported when it runs, since that takes seconds."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.table import Table

from eegnn.cli.app import interrupted, new_progress
from eegnn.compute import Compute
from eegnn.data.open import open_problem
from eegnn.experiments import registry
from eegnn.io import write_atomically
from eegnn.studies.collection import ExperimentResults, collect
from eegnn.studies.configs import whole_dataset
from eegnn.studies.costs import Cost, cost
from eegnn.studies.experiment import Experiment, Finding, Scope
from eegnn.studies.markdown import format_result, place_of
from eegnn.studies.pages import describe_finding, table_rows, trace, write_files, write_pages
from eegnn.studies.results_page import results_page
from eegnn.studies.runner import Runner, Watcher
from eegnn.studies.store import ResultStore
from eegnn.train.config import Config
from eegnn.train.models import NAMES


@dataclass(frozen=True)
class Session:
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
        left = self._run(experiment, available)
        results = self._results(experiment)
        files = write_pages(results, self.scope, self.out)
        findings = experiment.judge(results.table)
        self.console.print(f"{experiment.title}: {', '.join(map(str, files))}")
        if left:
            self.console.print(f"{len(left)} of {len(available)} runs are with other processes")
        self._print_findings(findings)
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
        absent = registry.missing_data(configs, self.data_dir)
        if fetch:
            absent = [name for name in absent if not self._fetch(name)]
        if absent:
            self.console.print(f"{experiment.name}: {', '.join(absent)} not here, left out")
        return [config for config in configs if config.dataset not in absent]

    def _fetch(self, dataset: str) -> bool:
        """Try to get a data set; say why where it does not work."""
        try:
            open_problem(dataset, 0, self.data_dir)
        except (OSError, ImportError) as error:
            self.console.print(str(error), highlight=False)
            return False
        return True

    def _run(self, experiment: Experiment, configs: list[Config]) -> list[Config]:
        """Do the runs, and return those that other processes do."""
        if not configs:
            return []
        store = ResultStore.of(experiment, self.scope, self.out)
        try:
            with _progress_bar(experiment.name, configs, store) as watch:
                options = (experiment.measurement, watch, self.compute)
                runner = Runner(store, self.runs, self.data_dir, *options)
                return runner.run(configs, self.storage)
        except KeyboardInterrupt as stop:
            raise interrupted(stop, "the same command goes on where it was") from None

    def _results(self, experiment: Experiment) -> ExperimentResults:
        """Return what there is of an experiment; of the full version, whichever splits were run."""
        if self.scope.quick:
            store = ResultStore.of(experiment, self.scope, self.out)
            return ExperimentResults(experiment, store.results(experiment.cells(self.scope)))
        found = collect(map(registry.find, registry.EXPERIMENTS), self.out).results
        return next(each for each in found if each.experiment.name == experiment.name)

    def _print_findings(self, findings: Sequence[Finding]) -> None:
        for finding in findings:
            if finding.so_far is not None:
                text = describe_finding(finding).replace("*", "")
                self.console.print(text, highlight=False, markup=False)
        if undecided := sum(finding.so_far is None for finding in findings):
            self.console.print(f"open, for want of runs: {undecided} of {len(findings)} statements")

    def show(self, experiment: Experiment, text: str) -> list[dict[str, Any]]:
        """List the runs behind the cells whose names contain the text."""
        results = self._results(experiment)
        table = [r for r in (*results.table, *results.superseded) if r.mean is not None]
        chosen = [result for result in table if text.lower() in place_of(result).lower()]
        if not chosen:
            near = difflib.get_close_matches(text, map(place_of, table), n=3, cutoff=0)
            hint = f"did you mean {' or '.join(map(repr, near))}?" if near else "nothing was run"
            raise ValueError(f"no number of {experiment.name} is called {text!r}: {hint}")
        for result in chosen:
            old = f" (superseded: {result.superseded})" if result.superseded else ""
            value = f"{result.cell.quantity.name} {format_result(result)}"
            self.console.print(f"{place_of(result)}: {value}{old}", highlight=False, markup=False)
            for run in trace(result)["runs"]:
                line = "  {value:.6g} split {split} seed {seed} commit {commit} {source}: {command}"
                text = line.format(**run)
                self.console.print(text, highlight=False, markup=False, soft_wrap=True)
        return [trace(result) for result in chosen]

    def write_results(self, page: Path) -> None:
        """Write one page of all experiments, from the folder of results alone."""
        found = collect(map(registry.find, registry.EXPERIMENTS), self.out)
        for each in found.results:
            if each.has_numbers:
                write_files(each, each.experiment.name, self.out)
        way = Path(os.path.relpath(self.out, page.parent)).as_posix()
        write_atomically(page, results_page(found, way).encode())
        self.console.print(f"{page}, and NAME.csv and NAME.png in {self.out}")

    def list_all(self) -> list[dict[str, Any]]:
        """Print a line of at most 80 columns for each experiment, and return them for programs."""
        rows = [self._describe(each) for each in registry.by_cost(self.scope.quick)]
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
        self.console.print(table)
        for row in rows:
            if wants := [*row["missing"], *filter(None, [row["needs"]])]:
                text = f"Elsewhere, with {', '.join(wants)}: {row['command']}"
                self.console.print(text, highlight=False)
        return rows

    def _describe(self, experiment: Experiment) -> dict[str, Any]:
        """Return what `--list` says of an experiment."""
        configs = experiment.configs(self.scope)
        store = ResultStore.of(experiment, self.scope, self.out)
        records = [record for config in configs if (record := store.find(config))]
        finished = [record for record in records if "failed" not in record]
        return {
            "name": experiment.name,
            "title": experiment.title,
            **cost(configs, finished)._asdict(),
            "estimate": experiment.minutes[self.scope.quick],
            "done": len(records),
            "missing": registry.missing_data(configs, self.data_dir),
            "needs": experiment.needs,
            "command": self.scope.command(experiment.name),
        }


def _select(configs: list[Config], names: str | None) -> list[Config]:
    """Keep the runs of the named models, and of the named data sets."""
    if names is None:
        return configs
    words = {word.strip() for word in names.split(",")}
    datasets = {whole_dataset(config.dataset) for config in configs}
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
        if (not models or config.model in models) and whole_dataset(config.dataset) in datasets
    ]


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
