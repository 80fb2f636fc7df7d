"""The page of an experiment: Markdown for people, CSV for programs."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from eegnn.io import write_atomically
from eegnn.studies.experiment import CellResult, Experiment, Finding, Scope, Table
from eegnn.studies.figures import draw_bars
from eegnn.studies.tables import by_group, by_row

FIELDS = (
    "group", "row", "column", "quantity", "mean", "sd", "n", "failed",
    "paper", "paper_sd", "difference", "verdict",
)  # fmt: skip
VERDICTS = {True: "holds", False: "does not hold", None: "open, for want of runs"}


def write_pages(experiment: Experiment, scope: Scope, table: Table, folder: Path) -> list[Path]:
    """Write ``NAME.md``, ``NAME.csv`` and ``NAME.png``, and return their paths."""
    name = experiment.file_name(scope)
    page, data, figure = (folder / f"{name}{ending}" for ending in (".md", ".csv", ".png"))
    write_atomically(page, experiment_markdown(experiment, scope, table).encode())
    write_atomically(data, table_csv(table).encode())
    (experiment.draw or draw_bars)(table, figure)
    return [page, data, figure]


def table_rows(table: Table) -> list[dict[str, Any]]:
    """Return a dictionary with :data:`FIELDS` for each cell."""
    rows = []
    for result in table:
        cell, paper = result.cell, result.cell.paper
        values = (
            cell.group, cell.row, cell.column, cell.quantity.name, result.mean, result.sd,
            len(result.values), result.failed, paper and paper.mean, paper and paper.sd,
            result.difference, result.verdict,
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


def experiment_markdown(experiment: Experiment, scope: Scope, table: Table) -> str:
    """Return the page: our numbers, the paper's beside them, and what it says."""
    parts = [
        f"# {experiment.title}" + scope.choose("", " (quick version)"),
        f"{experiment.shows} {experiment.settings}",
    ]
    if scope.quick:
        parts.append(
            f"**This is the quick version**: {experiment.quick}. It shows that all works; do not "
            "compare its numbers with the paper's."
        )
    parts.append(f"Written by `{scope.command(experiment.name)}`.")
    parts.append(f"![{experiment.title}]({experiment.file_name(scope)}.png)")
    for group, results in by_group(table).items():
        parts += [f"## {group}", *group_tables(results)]
    if any(result.cell.paper for result in table):
        parts += ["## Beside the paper", paper_comparison(table), *explanation(experiment, table)]
    if findings := list(experiment.findings(table)):
        parts += [f"## {experiment.findings_title}", findings_list(findings)]
    return "\n\n".join(parts) + "\n"


def group_tables(table: Table) -> list[str]:
    """Return what the numbers of a group are, and a table of its rows and columns."""
    quantities = dict.fromkeys(result.cell.quantity.name for result in table)
    runs = sorted({len(result.runs) for result in table if result.runs})
    counts = " or ".join(map(str, runs)) + (" run" if runs == [1] else " runs")
    what = "; ".join(quantities) + (f": mean ± s.d. of {counts}" if runs else "")
    columns = list(dict.fromkeys(result.cell.column for result in table))
    rows = []
    for row, results in by_row(table).items():
        numbers = {result.cell.column: format_result(result) for result in results}
        rows.append([row, *(numbers.get(column, "") for column in columns)])
    return [f"{what[0].upper()}{what[1:]}.", markdown_table(["", *columns], rows)]


def paper_comparison(table: Table) -> str:
    """Return a table with a line for each number of the paper, and ours beside it."""
    rows = []
    for result in table:
        cell, paper = result.cell, result.cell.paper
        if paper is None:
            continue
        digits = cell.quantity.digits
        theirs = f"{paper.mean:,.{digits}f}" + (f" ± {paper.sd:.{digits}f}" if paper.sd else "")
        ours = "" if result.mean is None else format_result(result)
        gap = "" if result.difference is None else f"{result.difference:+.1f}"
        place = (cell.group, cell.row, cell.column)
        rows.append([*place, ours, _count_runs(result), theirs, gap, result.verdict])
    heading = ["", "", "", "ours", "runs", "the paper", "difference in s.d.", ""]
    return markdown_table(heading, rows)


def explanation(experiment: Experiment, table: Table) -> list[str]:
    """Return why some numbers are worse than the paper's, if there are any."""
    if not experiment.why or not any(result.verdict == "worse" for result in table):
        return []
    return [f"The best explanation of what is worse: {experiment.why}"]


def _count_runs(result: CellResult) -> str:
    done, wanted = len(result.runs), len(result.cell.configs)
    if not wanted:
        return ""
    return str(done) if done >= wanted else f"{done} of {wanted}"


def format_result(result: CellResult) -> str:
    """Return a number such as ``84.1 ± 5.2``, with the count of runs that diverged."""
    digits = result.cell.quantity.digits
    diverged = f"{result.failed} diverged"
    if result.mean is None:
        return diverged if result.failed else "not run"
    sd = f" ± {result.sd:.{digits}f}" if result.sd is not None else ""
    return f"{result.mean:,.{digits}f}{sd}" + (f" ({diverged})" if result.failed else "")


def findings_list(findings: Iterable[Finding]) -> str:
    """Return a list of statements, each with whether it holds."""
    marks = {**VERDICTS, False: f"**{VERDICTS[False]}**"}
    return "\n".join(f"- {marks[finding.holds]}: {finding.text}." for finding in findings)


def markdown_table(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of Markdown."""
    lines = [heading, ["---"] * len(heading), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
