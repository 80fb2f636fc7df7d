"""Tables of experiments: Markdown for people, CSV for programs."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from eegnn.io import write_atomically
from eegnn.studies.study import Experiment, Finding, Measured, Plan

FIELDS = (
    "group", "row", "column", "quantity", "mean", "sd", "n", "failed",
    "paper", "paper_sd", "difference", "verdict",
)  # fmt: skip
MARKS = {True: "holds", False: "does not hold", None: "open, for want of runs"}


def file_name(experiment: Experiment, plan: Plan) -> str:
    """Return the name that all files of an experiment begin with."""
    return experiment.name + ("-quick" if plan.quick else "")


def write_study(
    experiment: Experiment, plan: Plan, table: Sequence[Measured], folder: Path
) -> list[Path]:
    """Write ``NAME.md``, ``NAME.csv`` and ``NAME.png``, and return their paths.

    Args:
        experiment: what was done.
        plan: how much of it.
        table: what was found.
        folder: where to write.
    """
    name = file_name(experiment, plan)
    texts = {".md": study_markdown(experiment, plan, table), ".csv": study_csv(table)}
    for ending, text in texts.items():
        write_atomically(folder / f"{name}{ending}", text.encode())
    figure = folder / f"{name}.png"
    experiment.draw(table, figure)
    return [*(folder / f"{name}{ending}" for ending in texts), figure]


def study_rows(table: Sequence[Measured]) -> list[dict[str, Any]]:
    """Return a dictionary with :data:`FIELDS` for each cell."""
    rows = []
    for m in table:
        cell, paper = m.cell, m.cell.paper
        values = (
            cell.group, cell.row, cell.column, cell.quantity.name, m.mean, m.sd, len(m.values),
            m.failed, paper and paper.mean, paper and paper.sd, m.difference, m.verdict,
        )  # fmt: skip
        rows.append(dict(zip(FIELDS, values, strict=True)))
    return rows


def study_csv(table: Sequence[Measured]) -> str:
    """Make a line for each cell; what is not known is empty."""
    text = io.StringIO(newline="")
    lines = csv.DictWriter(text, FIELDS, lineterminator="\n")
    lines.writeheader()
    lines.writerows(study_rows(table))
    return text.getvalue()


def study_markdown(experiment: Experiment, plan: Plan, table: Sequence[Measured]) -> str:
    """Make the page of an experiment: our numbers, the paper's beside them, and what it says."""
    name = file_name(experiment, plan)
    parts = [
        f"# {experiment.title}" + (" (quick version)" if plan.quick else ""),
        f"{experiment.shows} {experiment.settings}",
    ]
    if plan.quick:
        parts.append(
            f"**This is the quick version**: {experiment.quick}. It shows that all works; do not "
            "compare its numbers with the paper's."
        )
    parts.append(f"Written by `{plan.command(experiment.name)}`.")
    parts.append(f"![{experiment.title}]({name}.png)")
    for group in dict.fromkeys(m.cell.group for m in table):
        parts += ours([m for m in table if m.cell.group == group], group)
    if any(m.cell.paper for m in table):
        parts += ["## Beside the paper", beside(table)]
        if experiment.why and any(m.verdict == "worse" for m in table):
            parts.append(f"The best explanation of what is worse: {experiment.why}")
    if findings := experiment.findings(table):
        parts += [f"## {experiment.claims}", "\n".join(map(said, findings))]
    return "\n\n".join(parts) + "\n"


def ours(table: Sequence[Measured], group: str) -> list[str]:
    """Make a section with our numbers: a heading, what they are, and rows by columns."""
    quantities = dict.fromkeys(m.cell.quantity.name for m in table)
    runs = sorted({len(m.lines) for m in table if m.lines})
    counts = " or ".join(map(str, runs)) + (" run" if runs == [1] else " runs")
    what = "; ".join(quantities) + (f": mean ± s.d. of {counts}" if runs else "")
    columns = list(dict.fromkeys(m.cell.column for m in table))
    at = {(m.cell.row, m.cell.column): m for m in table}
    lines = [table_line(["", *columns]), table_line(["---"] * (len(columns) + 1))]
    for row in dict.fromkeys(m.cell.row for m in table):
        cells = [number(at[row, c]) if (row, c) in at else "" for c in columns]
        lines.append(table_line([row, *cells]))
    return [f"## {group}", f"{what[0].upper()}{what[1:]}.", "\n".join(lines)]


def beside(table: Sequence[Measured]) -> str:
    """Make a table with a line for each number of the paper, and ours beside it."""
    heading = ["", "", "", "ours", "runs", "the paper", "difference in s.d.", ""]
    lines = [table_line(heading), table_line(["---"] * len(heading))]
    for m in table:
        cell, paper = m.cell, m.cell.paper
        if paper is None:
            continue
        digits = cell.quantity.digits
        theirs = f"{paper.mean:,.{digits}f}" + (f" ± {paper.sd:.{digits}f}" if paper.sd else "")
        gap = "" if m.difference is None else f"{m.difference:+.1f}"
        mean = number(m) if m.mean is not None else ""
        runs = _runs(m) if cell.configs else ""
        lines.append(
            table_line([cell.group, cell.row, cell.column, mean, runs, theirs, gap, m.verdict])
        )
    return "\n".join(lines)


def _runs(measured: Measured) -> str:
    done, wanted = len(measured.lines), len(measured.cell.configs)
    return str(done) if done >= wanted else f"{done} of {wanted}"


def number(measured: Measured) -> str:
    """Say what was found: ``84.1 ± 5.2``, with runs that could not be trained."""
    digits = measured.cell.quantity.digits
    failed = f" ({measured.failed} diverged)" if measured.failed else ""
    if measured.mean is None:
        return f"not run{failed}" if not failed else failed.strip(" ()")
    sd = f" ± {measured.sd:.{digits}f}" if measured.sd is not None else ""
    return f"{measured.mean:,.{digits}f}{sd}{failed}"


def said(finding: Finding) -> str:
    """Make a line of a list: whether a statement holds, and the statement."""
    mark = MARKS[finding.holds]
    return f"- {mark if finding.holds is not False else f'**{mark}**'}: {finding.text}."


def table_line(cells: Sequence[str]) -> str:
    """Make a line of a Markdown table."""
    return "| " + " | ".join(cells) + " |"
