"""The page of an experiment: Markdown for people, CSV for programs."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

from eegnn.io import write_atomically
from eegnn.studies.collection import ExperimentResults
from eegnn.studies.experiment import CellResult, Finding, Scope, Table
from eegnn.studies.markdown import paper_tables, place_of, superseded_table

FIELDS = (
    "group", "row", "column", "quantity", "mean", "sd", "se", "n", "asked", "failed", "paper",
    "paper_sd", "difference", "difference_se", "verdict", "commits", "superseded",
)  # fmt: skip


def write_pages(results: ExperimentResults, scope: Scope, folder: Path) -> list[Path]:
    """Write ``NAME.md``, ``NAME.csv`` and, if there is one, the figure; return their paths."""
    page = folder / f"{results.experiment.file_name(scope)}.md"
    write_atomically(page, experiment_page(results, scope).encode())
    return [page, *write_files(results, page.stem, folder)]


def write_files(results: ExperimentResults, name: str, folder: Path) -> list[Path]:
    """Write ``NAME.csv`` and, if there is a figure, ``NAME.png``, and return their paths."""
    data, figure = folder / f"{name}.csv", folder / f"{name}.png"
    write_atomically(data, table_csv([*results.table, *results.superseded]).encode())
    if results.experiment.draw is None or not results.has_figure:
        return [data]
    results.experiment.draw(results.table, figure)
    return [data, figure]


def experiment_page(results: ExperimentResults, scope: Scope) -> str:
    """Return the page of one experiment."""
    experiment = results.experiment
    parts = [f"# {experiment.title}" + scope.choose("", " (quick version)")]
    if scope.quick:
        parts.append(
            f"**This is the quick version**: {experiment.quick}. It shows that all works; do not "
            "compare its numbers with the paper's."
        )
    parts.append(f"Written by `{scope.command(experiment.name)}`.")
    if results.has_figure:
        parts.append(f"![{experiment.title}]({experiment.file_name(scope)}.png)")
    return "\n\n".join([*parts, *section(results)]) + "\n"


def section(results: ExperimentResults) -> list[str]:
    """Return the paragraphs and tables on an experiment: what it is, and what was found."""
    experiment, table = results.experiment, results.table
    shown = [*table, *map(CellResult, experiment.quoted)]
    parts = [f"{experiment.shows} {experiment.settings}", *paper_tables(shown)]
    if experiment.why and any(result.verdict == "worse" for result in table):
        parts.append(f"The best explanation of what is worse: {experiment.why}")
    if findings := [each for each in experiment.judge(table) if each.so_far is not None]:
        listed = "\n".join(f"- {describe_finding(finding)}." for finding in findings)
        parts += [f"{experiment.findings_title}:", listed]
    if results.superseded:
        parts += ["Superseded runs, which no cell counts:", superseded_table(results.superseded)]
    if example := next((r for r in (*table, *results.superseded) if r.runs), None):
        command = f'eegnn reproduce {experiment.name} --show "{place_of(example)}"'
        parts.append(f"The runs behind a number: `{command}`.")
    return parts


def describe_finding(finding: Finding) -> str:
    """Return a statement after whether it holds, by complete cells or else so far."""
    verdict = {True: "holds", False: "**does not hold**", None: "open"}[finding.holds]
    if finding.holds is None and finding.so_far is not None:
        verdict += f", with runs missing; so far it {'holds' if finding.so_far else 'does not'}"
    return f"{verdict}: {finding.text}"


def table_rows(table: Table) -> list[dict[str, Any]]:
    """Return a dictionary with :data:`FIELDS` for each cell."""
    rows = []
    for result in table:
        cell, paper = result.cell, result.cell.paper
        commits = " ".join(f"{name}:{count}" for name, count in result.commits.items())
        values = (
            cell.group, cell.row, cell.column, cell.quantity.name, result.mean, result.sd,
            result.se, len(result.values), cell.num_runs, len(result.failures),
            paper and paper.mean, paper and paper.sd, result.difference, result.difference_se,
            result.verdict, commits, result.superseded,
        )  # fmt: skip
        rows.append(dict(zip(FIELDS, values, strict=True)))
    return rows


def table_csv(table: Table) -> str:
    """Return a line for each cell; what is not known is empty."""
    text = io.StringIO(newline="")
    lines = csv.DictWriter(text, FIELDS, lineterminator="\n")
    lines.writeheader()
    lines.writerows(table_rows(table))
    return text.getvalue()


def trace(result: CellResult) -> dict[str, Any]:
    """Return a cell with the runs behind it, a dictionary each."""
    runs = [
        {
            "value": result.cell.quantity.read(run),
            "val": run.get("val"),
            "split": run["config"]["split"],
            "seed": run["config"]["seed"],
            "commit": run.get("commit"),
            "source": run["source"],
            "command": run["command"],
        }
        for run in result.runs
    ]
    return {**table_rows([result])[0], "runs": runs}
