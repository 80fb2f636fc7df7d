"""What an experiment is: the cells of a table, the runs behind each, and the paper's number."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from eegnn.train.config import Config

#: A run in a file of results.
Line = dict[str, Any]


@dataclass(frozen=True)
class Quantity:
    """What is read from a run.

    Args:
        name: with its unit, as it stands over a table.
        read: takes a line of results.
        better: in which direction; ``"equal"`` for what can only be right or wrong.
        digits: after the point.
    """

    name: str
    read: Callable[[Line], float]
    better: Literal["higher", "lower", "equal"]
    digits: int = 2


def percent(name: str, digits: int = 2) -> Quantity:
    """Return the test score, of which more is better, as a percentage."""
    return Quantity(f"test {name}, %", lambda line: 100 * line["test"], "higher", digits)


ACCURACY = percent("accuracy", 1)
AUROC = percent("AUROC")
MAE = Quantity("test MAE", lambda line: line["test"], "lower", 3)
LOG10_MSE = Quantity("log₁₀ of the test MSE", lambda line: math.log10(line["test"]), "lower")
MEAN_EXIT = Quantity("mean exit layer", lambda line: line["exits"]["mean"], "equal", 1)
PARAMETERS = Quantity("parameters", lambda line: line["params"], "equal", 0)


class Score(NamedTuple):
    """A number of the paper, with its standard deviation where there is one."""

    mean: float
    sd: float | None = None


@dataclass(frozen=True)
class Cell:
    """A place in the table.

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
class Measured:
    """A cell and what was found.

    Args:
        cell: the place.
        lines: results of its runs, as far as there are any.
        failed: how many of its runs could not be trained.
    """

    cell: Cell
    lines: tuple[Line, ...] = ()
    failed: int = 0

    @property
    def values(self) -> list[float]:
        """The quantity in each run."""
        if self.cell.known is not None:
            return [self.cell.known]
        return [self.cell.quantity.read(line) for line in self.lines]

    @property
    def mean(self) -> float | None:
        """Over the runs; ``None`` where there is none."""
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


class Measurement(NamedTuple):
    """What is measured on a trained model, beyond the scores that every run has.

    Args:
        field: of the line of results that keeps it.
        look: takes the folder of the finished run and the data folder, and returns what JSON can
            hold.
    """

    field: str
    look: Callable[[Path, Path | None], Any]


class Finding(NamedTuple):
    """A statement, and whether our numbers bear it out; ``None``: not enough runs."""

    text: str
    holds: bool | None


class Plan(NamedTuple):
    """How much of an experiment to do.

    Args:
        quick: a small version of it.
        splits: those to run; ``None`` for as many as the experiment has.
    """

    quick: bool = False
    splits: tuple[int, ...] | None = None

    def over(self, full: int, quick: int) -> tuple[int, ...]:
        """Return the splits, or seeds, of an experiment that has so many."""
        return self.splits or tuple(range(quick if self.quick else full))

    def command(self, name: str) -> str:
        """Return what to type for an experiment of this name."""
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
        findings: what is claimed about it, checked against the table.
        claims: a heading for that; whose claims they are.
        draw: makes the figure, from the table and a path.
        keep_runs: whether the folders of finished runs are kept.
        measurement: on each trained model; a line of results without it is no result here.
        why: the best explanation of what is worse than in the paper.
        needs: what a machine needs beyond time and the data, such as a GPU.
    """

    name: str
    title: str
    shows: str
    settings: str
    quick: str
    minutes: tuple[float, float]
    cells: Callable[[Plan], Sequence[Cell]]
    draw: Callable[[Sequence[Measured], Path], None]
    findings: Callable[[Sequence[Measured]], Sequence[Finding]] = lambda table: ()
    claims: str = "What the paper says"
    keep_runs: bool = False
    measurement: Measurement | None = None
    why: str = ""
    needs: str = ""

    def configs(self, plan: Plan) -> list[Config]:
        """All runs, each once."""
        found = {c.model_dump_json(): c for cell in self.cells(plan) for c in cell.configs}
        return list(found.values())
