"""One page of all experiments: each number of the paper, ours beside it, and the count of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from eegnn.studies.experiment import CellResult, Experiment, Scope, Table
from eegnn.studies.pages import (
    explanation,
    findings_list,
    group_tables,
    markdown_table,
    paper_comparison,
)
from eegnn.studies.tables import by_group

#: The columns of the table of counts.
COUNTS = (
    "cells", "from runs", "beside the paper",
    "equal", "within one s.d.", "better", "worse", "differs", "not run",
)  # fmt: skip
HEAD = """\
# Results

Written by `eegnn reproduce --write-results FILE` from the runs in `results/`; not edited by hand.
The pages of single experiments are written by `eegnn reproduce NAME`, and
[Reproducing the paper](reproduce.md) says how numbers are compared. Only full versions count, never
`--quick`.

A cell is a number of the paper, or of ours where its figure has none. *Equal* and *differs* are for
what can only be right or wrong, such as a number of parameters; *within one s.d.*, *better* and
*worse* are for scores, by the paper's standard deviation. *From runs* counts cells with at least
one finished run; the others with a number are counted without training."""


@dataclass(frozen=True)
class ExperimentResults:
    """An experiment and the results that there are.

    Args:
        experiment: which.
        table: the results of its full version.
        missing: the data sets that were not on the machine that wrote the page.
    """

    experiment: Experiment
    table: Table
    missing: Sequence[str] = ()


def results_page(experiments: Sequence[ExperimentResults]) -> str:
    """Return the page, in the order of the experiments."""
    rows = [(f"`{each.experiment.name}`", count(each.table)) for each in experiments]
    rows.append(("**all**, each cell once", count(distinct(experiments))))
    lines = [[name, *(str(counts[column]) for column in COUNTS)] for name, counts in rows]
    parts = [HEAD, markdown_table(["", *COUNTS], lines)]
    for each in experiments:
        parts += _section(each)
    return "\n\n".join(parts) + "\n"


def count(table: Iterable[CellResult]) -> Counter[str]:
    """Count cells, those from runs, those that stand beside a number of the paper, and verdicts."""
    found: Counter[str] = Counter()
    for result in table:
        found["cells"] += 1
        found["from runs"] += bool(result.runs)
        found["beside the paper"] += result.cell.paper is not None and result.mean is not None
        found[result.verdict] += 1
    return found


def distinct(experiments: Iterable[ExperimentResults]) -> list[CellResult]:
    """Return the cells of all experiments, each once: tables of the paper share some numbers."""
    found: dict[object, CellResult] = {}
    for result in (result for each in experiments for result in each.table):
        cell = result.cell
        runs = tuple(config.model_dump_json() for config in cell.configs)
        # The same number of the paper for the same runs. Where it has none, columns may read the
        # same quantity of a run at different layers, so that the place decides.
        same = cell.paper.mean if runs and cell.paper else (cell.group, cell.row, cell.column)
        found.setdefault((runs, cell.quantity.name, same), result)
    return list(found.values())


def _section(results: ExperimentResults) -> list[str]:
    experiment, table = results.experiment, results.table
    parts = [f"## {experiment.name}", f"{experiment.title}. {experiment.shows}"]
    if all(result.mean is None for result in table):
        return [*parts, f"Not run: {_cost(results)}."]
    parts += [experiment.settings, f"To run it: {_cost(results)}."]
    compared = [result for result in table if result.cell.paper and result.mean is not None]
    if compared:
        parts += [paper_comparison(compared), *explanation(experiment, compared)]
    if not_run := [result for result in table if result.mean is None]:
        parts.append(f"Not run, {len(not_run)} cells: {_places(not_run)}.")
    for group, own in by_group([r for r in table if r.cell.paper is None]).items():
        if any(result.mean is not None for result in own):
            parts += [f"### {group}", *group_tables(own)]
    if decided := [each for each in experiment.findings(table) if each.holds is not None]:
        parts += [f"{experiment.findings_title}:", findings_list(decided)]
    return parts


def _cost(results: ExperimentResults) -> str:
    experiment = results.experiment
    cost = f"`{Scope().command(experiment.name)}`, {experiment.minutes[0]:,g} minutes of a core"
    if experiment.needs:
        cost += f"; needs {experiment.needs}"
    if results.missing:
        cost += f"; the data of {', '.join(results.missing)} was not here"
    return cost


def _places(table: Table) -> str:
    """Name cells, those of a group and row together."""
    rows: dict[tuple[str, str], list[str]] = {}
    for result in table:
        rows.setdefault((result.cell.group, result.cell.row), []).append(result.cell.column)
    return "; ".join(f"{group}, {row} ({', '.join(some)})" for (group, row), some in rows.items())
