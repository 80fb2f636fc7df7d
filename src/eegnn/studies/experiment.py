"""What an experiment is: the cells of a table, the runs behind each, and the paper's number."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from eegnn.compute import Compute
from eegnn.studies.quantities import Quantity, RunRecord
from eegnn.train.config import Config

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
    """

    group: str
    row: str
    column: str
    quantity: Quantity
    configs: tuple[Config, ...] = ()
    paper: Score | None = None
    known: float | None = None


@dataclass(frozen=True)
class CellResult:
    """A cell and the results of its runs.

    Args:
        cell: the cell.
        runs: the records of its finished runs.
        failed: how many of its runs could not be trained.
    """

    cell: Cell
    runs: tuple[RunRecord, ...] = ()
    failed: int = 0

    @property
    def values(self) -> list[float]:
        """The quantity in each run."""
        if self.cell.known is not None:
            return [self.cell.known]
        return [self.cell.quantity.read(run) for run in self.runs]

    @property
    def mean(self) -> float | None:
        """The mean over the runs; ``None`` where there is none."""
        return statistics.fmean(self.values) if self.values else None

    @property
    def sd(self) -> float | None:
        """The standard deviation over the runs; ``None`` with fewer than two."""
        return statistics.stdev(self.values) if len(self.values) > 1 else None

    @property
    def difference(self) -> float | None:
        """Ours − the paper's, in standard deviations: the paper's, or ours if it gives none."""
        if self.mean is None or self.cell.paper is None:
            return None
        sd = self.cell.paper.sd or self.sd
        return (self.mean - self.cell.paper.mean) / sd if sd else None

    @property
    def verdict(self) -> str:
        """``within one s.d.``, ``better``, ``worse``, ``equal``, ``differs`` or ``not run``.

        Empty where the paper has no number.
        """
        if self.mean is None:
            return "not run"
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
    """What is measured on a trained model, beyond the scores that every run has.

    Args:
        field: of the run's record that keeps it.
        measure: takes the folder of the finished run, the data folder and the device, and returns
            what JSON can hold.
    """

    field: str
    measure: Callable[[Path, Path | None, Compute], Any]


class Finding(NamedTuple):
    """A statement, and whether our numbers bear it out; ``None`` if runs are missing."""

    text: str
    holds: bool | None


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


@dataclass(frozen=True)
class Experiment:
    """A table or figure of the paper.

    Args:
        name: on the command line, and of its files.
        title: a heading.
        shows: what of the paper it repeats.
        settings: sentences on how, for those who compare.
        quick: how the quick version differs, in a few words.
        minutes: of one core, in full and quick.
        cells: the table.
        findings: statements about the table, checked against the results.
        findings_title: a heading for them, which tells whose statements they are.
        draw: makes the figure, from the results and a path; ``None`` for bars.
        measurement: on each trained model; a record without it is no result here.
        why: the best explanation of what is worse than in the paper.
        needs: what a machine needs beyond time and the data, such as a GPU.
    """

    name: str
    title: str
    shows: str
    settings: str
    quick: str
    minutes: tuple[float, float]
    cells: Callable[[Scope], Cells]
    findings: Callable[[Table], Findings] = lambda table: ()
    findings_title: str = "What the paper says"
    draw: Callable[[Table, Path], None] | None = None
    measurement: Measurement | None = None
    why: str = ""
    needs: str = ""

    def configs(self, scope: Scope) -> list[Config]:
        """Return all runs, each once."""
        found = {c.model_dump_json(): c for cell in self.cells(scope) for c in cell.configs}
        return list(found.values())

    def file_name(self, scope: Scope) -> str:
        """Return the name that all files of the experiment begin with."""
        return self.name + scope.choose("", "-quick")
