"""One page of all experiments: each number of the paper, ours beside it, and the count of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from eegnn.data.registry import DATASETS
from eegnn.studies.collection import Collection, ExperimentResults
from eegnn.studies.configs import whole_dataset
from eegnn.studies.costs import cost
from eegnn.studies.experiment import CellResult, Scope, Table
from eegnn.studies.markdown import (
    format_result,
    format_score,
    format_verdict,
    markdown_table,
    place_of,
    superseded_table,
)
from eegnn.studies.pages import section
from eegnn.train.config import Config

#: What a complete number beside one of the paper can be.
VERDICTS = ("equal", "within one s.d.", "better", "worse", "differs")
HEAD = """\
# Results

Our numbers beside those of the paper. `eegnn reproduce --write-results docs/RESULTS.md` writes this
page from the runs in `results/`, and a test compares the two; nothing is edited by hand."""
LEGEND = """\
- A cell has our mean ± s.d. over its runs, below it *the paper's*, and below that the difference:
  in standard deviations of the paper (s.d.) and in standard errors of the difference of the two
  means (s.e.), for which the paper is taken to have as many runs as the cell asks for. *Better*,
  *worse* and *within* one s.d. are for scores, by the paper's s.d.; *equal* and *differs* for what
  can only be right or wrong. A cell with fewer runs than it asks for says how many, and has no
  verdict but *incomplete*. A dash: not run. *Quoted*: a number that the paper has from another
  paper, and that is not run here. More in [Reproducing the paper](reproduce.md).
- Small numbers name the commits of the code that the runs of a cell are from, listed below its
  table; `+` means with changed files. Runs of the same settings count together whatever their
  commit.
- Each section ends with the command that lists the runs behind one of its numbers, with command,
  split, seed, commit, score and line; for another number, put its group, row and column.
- Every line of the `.jsonl` files in `results/` is behind a number, or in a table of superseded
  runs that names it. `results/NAME.csv` has all digits, and standard errors."""
ARCHIVE = """\
Version 0.1 decoded another state at an exit: its runs of models with exits are in
`results/archive/0.1`, with a README that says what each file is, and are not counted here. Single
trials are in `results/trials`."""


def results_page(found: Collection, folder: str) -> str:
    """Return the page; ``folder`` is the way from it to the folder of results."""
    parts = [HEAD, *_summary(found)]
    parts += ["## How to read the tables", LEGEND]
    of_tables = [each for each in found.results if any(r.cell.paper for r in each.table)]
    for heading, wanted in (("The paper's tables", True), ("The paper's figures", False)):
        parts.append(f"## {heading}")
        for each in found.results:
            if (each in of_tables) == wanted and each.has_numbers:
                name, title = each.experiment.name, each.experiment.title
                parts += [f"### {name}", f"**{title}**"]
                if each.has_figure:
                    parts.append(f"![{title}]({folder}/{name}.png)")
                parts += section(each)
    parts += ["## Other runs", ARCHIVE]
    if found.others:
        parts += ["In files that are named after no experiment:", superseded_table(found.others)]
    return "\n\n".join([*parts, *_not_run(found)]) + "\n"


def _summary(found: Collection) -> list[str]:
    """Return counts, the statements, and what is not within one s.d. of the paper."""
    cells = distinct(found.results)
    counts = count(cells)
    beside = [result for result in cells if result.verdict in VERDICTS]
    trained = [result for result in beside if _is_trained(result)]
    counted = [result for result in beside if not _is_trained(result)]
    findings = [f.holds for each in found.results for f in each.experiment.judge(each.table)]
    superseded = [r for each in found.results for r in each.superseded] + list(found.others)
    outside = [
        f"  - `{each.experiment.name}`, {place_of(r)}: {format_result(r)}, the paper "
        f"{format_score(r.cell.paper, r.cell.quantity)} ({format_verdict(r)})."
        for each in found.results
        for r in each.table
        if r.cell.paper is not None and r.verdict in ("better", "worse")
    ]
    points = [
        f"- **{len(cells):,} numbers**: {counts['complete']:,} have all their runs or need none, "
        f"{counts['incomplete']} some of their runs, {counts['not run']:,} none.",
        f"- **{len(beside)} complete numbers stand beside one of the paper**: {len(trained)} of "
        f"trained models ({_verdicts(count(trained))}), {len(counted)} counts of parameters and "
        f"data ({_verdicts(count(counted))}). Better or worse by more than one s.d.:",
        *(outside or ["  - none."]),
        f"- **{len(findings)} statements**, the paper's and some of ours, by complete numbers "
        f"alone: {findings.count(True)} hold, {findings.count(False)} do not, "
        f"{findings.count(None)} are open for want of runs.",
        f"- **{len({s for r in superseded for s in r.sources})} runs are superseded**: experiments "
        "have other settings now. They are listed with their experiment, with what differs.",
        "- What needs data or hardware that was not here, and what is still to be run, is at the "
        "[end](#not-run).",
    ]
    return [
        "## In a minute",
        "\n".join(points),
        *_statements(found.results),
        "## What there is",
        "Numbers with all, some and none of their runs. Minutes are of one core, measured on "
        "finished runs and, for those to come, taken from others of the same data set and model; "
        "`+`: without those of which none has finished; `~`: estimated, where nothing was run.",
        _overview(found.results),
    ]


def _is_trained(result: CellResult) -> bool:
    return any("test" in run for run in result.runs)


def _verdicts(counts: Counter[str]) -> str:
    return ", ".join(f"{counts[name]} {name}" for name in VERDICTS if counts[name])


def _statements(results: Iterable[ExperimentResults]) -> list[str]:
    """Return lists of the statements that hold and that do not, and where; the others are counted.

    Without numbers a statement is its claim alone, mostly after the name of a group or column.
    """
    lists: dict[bool, list[str]] = {False: [], True: []}
    undecided = []
    for each in results:
        claims = each.experiment.findings([CellResult(result.cell) for result in each.table])
        cells = [result.cell for result in each.table]
        names = {name for cell in cells for name in (cell.group, cell.row, cell.column)}
        where: dict[tuple[bool, str], list[str]] = {}
        findings = each.experiment.judge(each.table)
        for claim, finding in zip(claims, findings, strict=True):
            place, colon, text = claim.text.partition(": ")
            if not colon or not any(f"{name},".startswith(f"{place},") for name in names):
                place, text = "", claim.text
            if finding.holds is not None:
                where.setdefault((finding.holds, text), []).extend([place] if place else [])
        for (holds, text), places in where.items():
            listed = f": {'; '.join(places)}" if places else ""
            lists[holds].append(f"- {text}{listed} (`{each.experiment.name}`).")
        if number := sum(finding.holds is None for finding in findings):
            undecided.append(f"`{each.experiment.name}` {number}")
    headings = {False: "Statements that do not hold:", True: "Statements that hold:"}
    parts = [
        part for holds, some in lists.items() if some for part in (headings[holds], "\n".join(some))
    ]
    return [*parts, *([f"Open: {', '.join(undecided)}."] if undecided else [])]


def _overview(results: Iterable[ExperimentResults]) -> str:
    rows = []
    for each in results:
        counts, experiment = count(each.table), each.experiment
        wanted = [config for result in each.table for config in result.cell.configs]
        runs = [run for result in each.table for run in result.runs]
        minutes = cost(_runs(wanted).values(), runs).describe(experiment.minutes[0])
        numbers = [str(counts[name]) for name in ("complete", "incomplete", "not run")]
        name = f"[{experiment.name}](#{experiment.name})" if each.has_numbers else experiment.name
        rows.append([name, experiment.title, *numbers, _verdicts(counts), minutes])
    heading = ["", "", "all", "some", "none", "beside the paper", "minutes"]
    return markdown_table(heading, rows)


def count(table: Iterable[CellResult]) -> Counter[str]:
    """Count cells that are complete, and verdicts."""
    found: Counter[str] = Counter()
    for result in table:
        found["complete"] += result.mean is not None and result.complete
        found[result.verdict] += 1
    return found


def distinct(results: Iterable[ExperimentResults]) -> list[CellResult]:
    """Return the cells of all experiments, each once: tables of the paper share some numbers."""
    found: dict[object, CellResult] = {}
    for result in (result for each in results for result in each.table):
        cell = result.cell
        runs = tuple(config.model_dump_json() for config in cell.configs)
        # The same number of the paper for the same runs. Where it has none, columns may read the
        # same quantity of a run at different layers, so that the place decides.
        same = cell.paper.mean if runs and cell.paper else (cell.group, cell.row, cell.column)
        found.setdefault((runs, cell.quantity.name, same), result)
    return list(found.values())


def _runs(configs: Iterable[Config]) -> dict[str, Config]:
    """Return the runs, each once."""
    return {config.model_dump_json(): config for config in configs}


def _not_run(found: Collection) -> list[str]:
    """Return what is missing: for want of data or hardware, and for want of time."""
    elsewhere, later = [], []
    for each in found.results:
        needs, missing = each.experiment.needs, _missing(each.table)
        absent = (_datasets(missing) & DATASETS.keys()) - found.datasets
        away = {k: c for k, c in missing.items() if needs or _datasets({k: c}) <= absent}
        here = {k: c for k, c in missing.items() if k not in away}
        data = f"the data of {', '.join(sorted(absent))}" if absent else ""
        if away:
            *row, minutes = _describe_missing(each, away)
            elsewhere.append([*row, "; ".join(filter(None, (data, needs))), minutes])
        if here:
            later.append(_describe_missing(each, here))
    heading = ["command", "numbers", "runs", "needs", "minutes"]
    return [
        "## Not run",
        "What needs data or hardware that was not here; minutes as above:",
        markdown_table(heading, elsewhere),
        "What is here, but has not been run, or not with all runs:",
        markdown_table([name for name in heading if name != "needs"], later),
    ]


def _missing(table: Table) -> dict[str, Config]:
    return _runs(config for result in table for config in result.missing)


def _datasets(runs: Mapping[str, Config]) -> set[str]:
    return {whole_dataset(config.dataset) for config in runs.values()}


def _describe_missing(each: ExperimentResults, runs: Mapping[str, Config]) -> list[str]:
    """Return the command for some missing runs, their numbers and runs, and the minutes."""
    cells = sum(not runs.keys().isdisjoint(_missing([result])) for result in each.table)
    command = Scope().command(each.experiment.name)
    if len(runs) < len(_missing(each.table)):
        command += f" --only {','.join(sorted(_datasets(runs)))}"
    finished = [run for result in each.table for run in result.runs]
    share = len(runs) / len(_runs(config for r in each.table for config in r.cell.configs))
    minutes = cost(runs.values(), finished).describe(share * each.experiment.minutes[0])
    return [f"`{command}`", str(cells), str(len(runs)), minutes]
