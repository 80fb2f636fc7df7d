"""One page of all experiments: each number of the paper, ours beside it, and the count of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from eegnn.studies.page import beside, ours, said, table_line
from eegnn.studies.study import Experiment, Measured, Plan

#: What is counted.
VERDICTS = ("equal", "within one s.d.", "better", "worse", "differs", "not run")
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
class Study:
    """An experiment and what there is of it.

    Args:
        experiment: which.
        table: its cells in full.
        missing: the data sets that were not on the machine that wrote the page.
    """

    experiment: Experiment
    table: Sequence[Measured]
    missing: Sequence[str] = ()


def results_page(studies: Sequence[Study]) -> str:
    """Make the page, in the order of the studies."""
    parts = [HEAD, _counts(studies)]
    for study in studies:
        parts += _section(study)
    return "\n\n".join(parts) + "\n"


def count(table: Iterable[Measured]) -> Counter[str]:
    """Count cells, those from runs, those that stand beside a number of the paper, and verdicts."""
    found: Counter[str] = Counter()
    for m in table:
        found["cells"] += 1
        found["from runs"] += bool(m.lines)
        found["beside the paper"] += m.cell.paper is not None and m.mean is not None
        found[m.verdict] += 1
    return found


def distinct(studies: Sequence[Study]) -> list[Measured]:
    """The cells of all studies, each once: tables of the paper share some numbers."""
    found: dict[object, Measured] = {}
    for study in studies:
        for m in study.table:
            runs = tuple(config.model_dump_json() for config in m.cell.configs)
            place = (m.cell.group, m.cell.row, m.cell.column)
            # The same number of the paper for the same runs. Where it has none, columns may read
            # the same quantity of a run at different layers, so that the place decides.
            told = m.cell.paper.mean if runs and m.cell.paper else place
            found.setdefault((runs, m.cell.quantity.name, told), m)
    return list(found.values())


def _counts(studies: Sequence[Study]) -> str:
    heading = ["", "cells", "from runs", "beside the paper", *VERDICTS]
    lines = [
        table_line(heading),
        table_line(["---"] * len(heading)),
        *(_count_line(f"`{study.experiment.name}`", count(study.table)) for study in studies),
        _count_line("**all**, each cell once", count(distinct(studies))),
    ]
    return "\n".join(lines)


def _count_line(name: str, found: Counter[str]) -> str:
    numbers = [found["cells"], found["from runs"], found["beside the paper"]]
    numbers += [found[verdict] for verdict in VERDICTS]
    return table_line([name, *map(str, numbers)])


def _section(study: Study) -> list[str]:
    experiment, table = study.experiment, study.table
    parts = [f"## {experiment.name}", f"{experiment.title}. {experiment.shows}"]
    cost = f"`{Plan().command(experiment.name)}`, {experiment.minutes[0]:,g} minutes of a core"
    if experiment.needs:
        cost += f"; needs {experiment.needs}"
    if study.missing:
        cost += f"; the data of {', '.join(study.missing)} was not here"
    if not any(m.mean is not None for m in table):
        return [*parts, f"Not run: {cost}."]
    parts += [f"{experiment.settings}", f"To run it: {cost}."]
    told = [m for m in table if m.cell.paper is not None]
    if found := [m for m in told if m.mean is not None]:
        parts.append(beside(found))
        if experiment.why and any(m.verdict == "worse" for m in told):
            parts.append(f"The best explanation of what is worse: {experiment.why}")
    if open_cells := [m for m in table if m.mean is None]:
        parts.append(f"Not run, {len(open_cells)} cells: {_places(open_cells)}.")
    own = [m for m in table if m.cell.paper is None]
    for group in dict.fromkeys(m.cell.group for m in own if m.mean is not None):
        heading, *rest = ours([m for m in own if m.cell.group == group], group)
        parts += [f"#{heading}", *rest]
    if statements := [
        finding for finding in experiment.findings(table) if finding.holds is not None
    ]:
        parts += [f"{experiment.claims}:", "\n".join(map(said, statements))]
    return parts


def _places(table: Sequence[Measured]) -> str:
    """Name cells, those of a group and row together."""
    rows: dict[tuple[str, str], list[str]] = {}
    for m in table:
        rows.setdefault((m.cell.group, m.cell.row), []).append(m.cell.column)
    return "; ".join(f"{group}, {row} ({', '.join(some)})" for (group, row), some in rows.items())
