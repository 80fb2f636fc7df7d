"""Tables of Markdown: results in the layout of the paper, and superseded runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from eegnn.studies.experiment import CellResult, Score, Table
from eegnn.studies.quantities import Quantity
from eegnn.studies.tables import by_group, by_row
from eegnn.train.schemas import NO_MODEL


def place_of(result: CellResult) -> str:
    """Return the name of a cell: its group, row and column."""
    return f"{result.cell.group}, {result.cell.row}, {result.cell.column}"


def paper_tables(table: Table) -> list[str]:
    """Return the tables in the layout of the paper, with its numbers below ours.

    What has neither a number of ours nor of the paper is left out, and so is a group without any of
    ours. Groups with the same rows and at most two columns each become one table.
    """
    parts: list[str] = []
    groups = _groups(table)
    commits = dict.fromkeys(name for some in groups.values() for r in some for name in r.commits)
    numbers = {name: number for number, name in enumerate(commits, start=1)}
    for name, group in groups.items():
        parts += [f"**{name}**"] if name else []
        parts += [text for text in (_caption(group),) if text not in parts]
        parts.append(_grid(group, numbers if len(numbers) > 1 else {}))
    if len(numbers) > 1:
        legend = ", ".join(f"<sup>{number}</sup> `{name}`" for name, number in numbers.items())
        parts.append(f"The runs are of the commits {legend}.")
    return [*parts, *(f"All runs are of commit `{name}`." for name in numbers if len(numbers) == 1)]


def _groups(table: Table) -> dict[str, list[CellResult]]:
    """Return the results of each table, by its name, which is empty where there is only one."""
    found = by_group(table)
    groups = {
        name: [r for r in group if r.mean is not None or r.failures or r.cell.paper]
        for name, group in found.items()
        if any(result.mean is not None or result.failures for result in group)
    }
    narrow = all(len({r.cell.column for r in group}) <= 2 for group in groups.values())
    if len(groups) > 1 and narrow and len({tuple(by_row(g)) for g in groups.values()}) == 1:
        joined = [
            replace(r, cell=replace(r.cell, column=f"{name}, {r.cell.column}"))
            for name, group in groups.items()
            for r in group
        ]
        return {"": joined}
    return {name * (len(found) > 1): group for name, group in groups.items()}


def _grid(table: Table, commits: Mapping[str, int]) -> str:
    columns = list(dict.fromkeys(result.cell.column for result in table))
    rows = []
    for row, results in by_row(table).items():
        texts = {result.cell.column: _cell(result, commits) for result in results}
        rows.append([row, *(texts.get(column, "") for column in columns)])
    return markdown_table(["", *columns], rows)


def _caption(table: Table) -> str:
    what = "; ".join(dict.fromkeys(result.cell.quantity.name for result in table))
    trained = [r.cell for r in table if any(c.model != NO_MODEL for c in r.cell.configs)]
    asked = sorted({cell.num_runs for cell in trained})
    counts = " or ".join(map(str, asked))
    runs = ": one run" if asked == [1] else f": mean ± s.d. of {counts} runs" if asked else ""
    return f"{what[0].upper()}{what[1:]}{runs}."


def _cell(result: CellResult, commits: Mapping[str, int]) -> str:
    """Return ours, with the numbers of its commits; the paper's; and how they compare."""
    cell = result.cell
    if cell.paper is not None and not cell.configs and cell.known is None:
        return f"*{format_score(cell.paper, cell.quantity)}*, quoted"
    marks = ",".join(str(commits[name]) for name in result.commits if name in commits)
    lines = [format_result(result) + (f"<sup>{marks}</sup>" if marks else "")]
    if result.cell.paper is not None and result.verdict != "equal":
        lines.append(f"*{format_score(result.cell.paper, result.cell.quantity)}*")
    if result.cell.paper is not None and result.mean is not None:
        lines.append(format_verdict(result))
    return "<br>".join(lines)


def format_verdict(result: CellResult) -> str:
    """Return a verdict such as ``worse: -1.7 s.d., -3.2 s.e.``, where both can be counted."""
    if result.verdict in ("equal", "incomplete"):
        return result.verdict
    gaps = {"s.d.": result.difference, "s.e.": result.difference_se}
    texts = [f"{round(gap, 1) + 0:+.1f} {unit}" for unit, gap in gaps.items() if gap is not None]
    verdict = result.verdict.removesuffix(" one s.d.")
    return verdict + (f": {', '.join(texts)}" if texts else "")


def format_result(result: CellResult) -> str:
    """Return a number such as ``84.1 ± 5.2 (2 of 10 runs)``, with the runs that diverged."""
    notes = [f"{len(result.failures)} diverged"] if result.failures else []
    if result.mean is None:
        return ", ".join(notes) or "–"
    if not result.complete and not result.superseded:
        done = len(result.runs) + len(result.others)
        notes.insert(0, f"{done} of {len(result.cell.configs)} runs")
    if result.cell.tuned is not None:
        notes.append(f"{result.cell.tuned} {result.cell.tuned_value(result.runs[0])}")
    number = format_score(Score(result.mean, result.sd), result.cell.quantity)
    return number + (f" ({', '.join(notes)})" if notes else "")


def format_score(score: Score, quantity: Quantity) -> str:
    """Return a number such as ``84.1 ± 5.2``."""
    sd = "" if score.sd is None else f" ± {score.sd:.{quantity.digits}f}"
    return f"{score.mean:,.{quantity.digits}f}{sd}"


def superseded_table(table: Table) -> str:
    """Return a table of runs that no cell asks for, with what is different in them."""
    rows = []
    for sources, same in groupby(table, key=lambda result: result.sources):
        results = list(same)
        first = results[0]
        several = len(results) > 1
        ours = [f"{r.cell.column}: " * several + format_result(r) for r in results]
        theirs = [
            f"{r.cell.column}: " * several + format_score(r.cell.paper, r.cell.quantity)
            for r in results
            if r.cell.paper is not None
        ]
        place = [first.cell.group, first.cell.row, *([] if several else [first.cell.column])]
        commits = ", ".join(f"`{name}`" for name in first.commits)
        lines = [", ".join(place), first.superseded, "<br>".join(ours), "<br>".join(theirs)]
        rows.append([*lines, _describe_runs(first), commits, _describe_lines(sources)])
    heading = ["cell", "what differs", "ours", "the paper", "runs", "commits", "lines"]
    return markdown_table(heading, rows)


def _describe_runs(result: CellResult) -> str:
    configs = [record["config"] for record in (*result.runs, *result.failures)]
    splits, seeds = ({config[name] for config in configs} for name in ("split", "seed"))
    return f"{len(configs)}: split {_spans(splits)}, seed {_spans(seeds)}"


def _describe_lines(sources: Iterable[str]) -> str:
    files: dict[str, list[int]] = {}
    for file, _, line in (source.partition(":") for source in sources):
        files.setdefault(file, []).append(int(line))
    return "; ".join(f"`{file}` {_spans(lines)}" for file, lines in files.items())


def _spans(numbers: Iterable[int]) -> str:
    """Return numbers such as ``0–9, 12``."""
    spans: list[list[int]] = []
    for number in sorted(numbers):
        if spans and number == spans[-1][-1] + 1:
            spans[-1].append(number)
        else:
            spans.append([number])
    return ", ".join(f"{s[0]}–{s[-1]}" if len(s) > 1 else str(s[0]) for s in spans)


def markdown_table(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of Markdown."""
    lines = [heading, ["---"] * len(heading), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
