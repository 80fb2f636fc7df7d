"""What an experiment is: the cells of a table, the runs behind each, and the paper's number."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from eegnn.studies.quantities import Quantity, RunRecord
from eegnn.train.config import Config
from eegnn.train.models import all_options

T = TypeVar("T")


class Score(NamedTuple):
    """A number of the paper, with its standard deviation where there is one."""

    mean: float
    sd: float | None = None


@dataclass(frozen=True)
class Cell:
    """A cell of a table.

    Args:
        group: which of the tables, such as the data set; also the panel of the figure.
        row: such as the model.
        column: such as the depth.
        quantity: what is read from the runs.
        configs: the runs, one for each split or seed.
        paper: the number of the paper.
        known: the number itself, where it takes no training.
        tuned: an option in whose values ``configs`` differ; the runs with the value of the best
            mean validation score count.
    """

    group: str
    row: str
    column: str
    quantity: Quantity
    configs: tuple[Config, ...] = ()
    paper: Score | None = None
    known: float | None = None
    tuned: str | None = None

    @property
    def num_runs(self) -> int:
        """The number of runs in the mean: one for each split and seed."""
        return len({(config.split, config.seed) for config in self.configs})

    def tuned_value(self, record: RunRecord) -> Any:
        """Return the value of the tuned option in a run; ``None`` where there is none."""
        if self.tuned is None:
            return None
        config = record["config"]
        return all_options(config["model"], config["options"])[self.tuned]


@dataclass(frozen=True)
class CellResult:
    """A cell and the results of its runs.

    Args:
        cell: the cell.
        runs: the records of its finished runs.
        failures: the records of those that could not be trained.
        superseded: how the settings of the runs differ from those that the cell has now; empty for
            the runs that it asks for.
        others: the records of finished runs with values of :attr:`Cell.tuned` that were not chosen.
    """

    cell: Cell
    runs: tuple[RunRecord, ...] = ()
    failures: tuple[RunRecord, ...] = ()
    superseded: str = ""
    others: tuple[RunRecord, ...] = ()

    @property
    def records(self) -> tuple[RunRecord, ...]:
        """The records of all runs, also of those that failed or were not chosen."""
        return (*self.runs, *self.others, *self.failures)

    @property
    def values(self) -> list[float]:
        """The quantity in each run."""
        if self.cell.known is not None:
            return [self.cell.known]
        return [self.cell.quantity.read(run) for run in self.runs]

    @property
    def complete(self) -> bool:
        """Whether no run is missing."""
        return len(self.records) >= len(self.cell.configs)

    @property
    def missing(self) -> list[Config]:
        """The runs that are neither finished nor failed; those of a cell differ in these three."""

        def differing(record: RunRecord) -> tuple[Any, ...]:
            config = record["config"]
            return config["split"], config["seed"], self.cell.tuned_value(record)

        found = {differing(record) for record in self.records}
        return [c for c in self.cell.configs if differing({"config": c.model_dump()}) not in found]

    @property
    def sources(self) -> list[str]:
        """Where the records are: file and number of the line."""
        return [record["source"] for record in self.records]

    @property
    def commits(self) -> Counter[str]:
        """How many of the runs are from which commit of the code; ``+``: with changed files."""
        commits = (str(run.get("commit") or "unknown") for run in self.runs)
        return Counter(name[:7] + "+" * name.endswith("+") for name in commits)

    @property
    def mean(self) -> float | None:
        """The mean over the runs; ``None`` where there is none."""
        return statistics.fmean(self.values) if self.values else None

    @property
    def sd(self) -> float | None:
        """The standard deviation over the runs; ``None`` with fewer than two."""
        return statistics.stdev(self.values) if len(self.values) > 1 else None

    @property
    def se(self) -> float | None:
        """The standard error of the mean; ``None`` with fewer than two runs."""
        return None if self.sd is None else self.sd / math.sqrt(len(self.values))

    @property
    def difference(self) -> float | None:
        """Ours − the paper's, in standard deviations: the paper's, or ours if it gives none."""
        if self.mean is None or self.cell.paper is None:
            return None
        sd = self.cell.paper.sd or self.sd
        return (self.mean - self.cell.paper.mean) / sd if sd else None

    @property
    def difference_se(self) -> float | None:
        """Ours − the paper's, in standard errors of the difference of the two means.

        The paper's standard error is that of as many runs as the cell asks for.
        """
        paper = self.cell.paper
        if self.mean is None or self.se is None or paper is None or paper.sd is None:
            return None
        error = math.hypot(self.se, paper.sd / math.sqrt(self.cell.num_runs or 1))
        return (self.mean - paper.mean) / error if error else None

    @property
    def verdict(self) -> str:
        """``within one s.d.``, ``better``, ``worse``, ``equal`` or ``differs`` with all runs.

        Otherwise ``incomplete`` or ``not run``; empty where the paper has no number.
        """
        if self.superseded:
            return "superseded"
        if self.mean is None:
            return "not run"
        if not self.complete:
            return "incomplete"
        if self.cell.paper is None:
            return ""
        gap = self.mean - self.cell.paper.mean
        if gap == 0:
            return "equal"
        if self.difference is not None and abs(self.difference) <= 1:
            return "within one s.d."
        if self.cell.quantity.better == "equal":
            return "differs"
        return "better" if (gap > 0) == (self.cell.quantity.better == "higher") else "worse"


Cells = Iterable[Cell]
#: The results of an experiment, one for each of its cells.
Table = Sequence[CellResult]


class Measurement(NamedTuple):
    """What is measured beyond the scores that every run has.

    Args:
        field: of the run's record that keeps it.
        measure: takes the trained model and its data, a :class:`~eegnn.nn.model.GraphModel` and
            :class:`~eegnn.train.batches.Batches`, and returns what JSON can hold. Where the model
            is :data:`NO_MODEL`, it takes the name of the data set and the data folder.
    """

    field: str
    measure: Callable[..., Any]


class Finding(NamedTuple):
    """A statement, and whether our numbers bear it out.

    Args:
        text: the statement.
        holds: whether it is so; ``None`` if runs are missing.
        so_far: the same by the runs that there are.
    """

    text: str
    holds: bool | None
    so_far: bool | None = None


Findings = Iterable[Finding]


class Scope(NamedTuple):
    """How much of an experiment is run.

    Args:
        quick: a small version of it.
        splits: the splits or seeds to run; ``None`` for as many as the experiment has.
    """

    quick: bool = False
    splits: tuple[int, ...] | None = None

    def choose(self, full: T, quick: T) -> T:
        """Return a setting of the full, or of the quick version."""
        return quick if self.quick else full

    def numbers(self, full: int, quick: int = 1) -> tuple[int, ...]:
        """Return the splits, or seeds, of an experiment that has so many."""
        return self.splits or tuple(range(self.choose(full, quick)))

    def command(self, name: str) -> str:
        """Return the command that runs this much of an experiment."""
        splits = "" if self.splits is None else f" --splits {','.join(map(str, self.splits))}"
        return f"eegnn reproduce {name}{' --quick' if self.quick else ''}{splits}"


@dataclass(frozen=True, kw_only=True)
class About:
    """The texts about a table or figure, and how it is drawn.

    Args:
        title: a heading.
        shows: what of the paper it repeats.
        settings: sentences on how, for a comparison.
        quick: how the quick version differs, in a few words.
        minutes: of one core, in full and quick, estimated: where runs have finished, their own
            times count.
        findings_title: a heading for the statements, which tells whose they are.
        draw: makes the figure, from the results and a path; ``None`` where there is none.
        measurement: on each trained model, or data set; a record without it is no result here.
        why: the best explanation of what is worse than in the paper.
        needs: what a machine needs beyond time and the data, such as a GPU.
        quoted: numbers that the paper has from other papers and that are not run here; they stand
            in the tables and are counted nowhere.
    """

    title: str
    shows: str
    settings: str
    quick: str
    minutes: tuple[float, float]
    findings_title: str = "What the paper says"
    draw: Callable[[Table, Path], None] | None = None
    measurement: Measurement | None = None
    why: str = ""
    needs: str = ""
    quoted: tuple[Cell, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Experiment(About):
    """A table or figure of the paper.

    Args:
        name: on the command line, and of its files.
        cells: the table.
        findings: statements about the table, checked against the results.
    """

    name: str
    cells: Callable[[Scope], Cells]
    findings: Callable[[Table], Findings] = lambda table: ()

    def judge(self, table: Table) -> list[Finding]:
        """Check the statements by complete cells; those still open also by the runs so far."""
        complete = [r if r.complete else CellResult(r.cell) for r in table]
        pairs = zip(self.findings(complete), self.findings(table), strict=True)
        return [
            Finding(now.text if done.holds is None else done.text, done.holds, now.holds)
            for done, now in pairs
        ]

    def configs(self, scope: Scope) -> list[Config]:
        """Return all runs, each once."""
        found = {c.model_dump_json(): c for cell in self.cells(scope) for c in cell.configs}
        return list(found.values())

    def file_name(self, scope: Scope) -> str:
        """Return the name that all files of the experiment begin with."""
        return self.name + scope.choose("", "-quick")
