"""All runs of a folder of results: behind the cells of experiments, or superseded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from eegnn.studies.experiment import Cell, CellResult, Experiment, Scope, Table
from eegnn.studies.quantities import Quantity, RunRecord
from eegnn.studies.store import ResultStore, read_folder, settings_of, settings_of_record

#: Said of runs whose settings are those of today.
REPEATED, ELSEWHERE = "nothing: another run counts", "other splits or seeds"
#: Said of runs where no experiment has their data set and model.
UNASKED = "no experiment has this data set and model"


@dataclass(frozen=True)
class ExperimentResults:
    """An experiment and what there is of it.

    Args:
        experiment: which.
        table: the results of its full version.
        superseded: results of runs that no cell of any experiment asks for, in its files.
    """

    experiment: Experiment
    table: Table
    superseded: Table = ()

    @property
    def has_figure(self) -> bool:
        """Whether there is something to draw."""
        return self.experiment.draw is not None and any(result.runs for result in self.table)

    @property
    def has_numbers(self) -> bool:
        """Whether there is a number, of runs that count or of others."""
        return bool(self.superseded) or any(result.mean is not None for result in self.table)


class Collection(NamedTuple):
    """All results of a folder.

    Args:
        results: of each experiment.
        others: superseded runs in files that are named after no experiment.
        datasets: those of which the folder has a line.
    """

    results: list[ExperimentResults]
    others: Table
    datasets: set[str]


def collect(experiments: Iterable[Experiment], folder: Path) -> Collection:
    """Read a folder of results; each line is behind cells, or else superseded, once."""
    tables: dict[str, ExperimentResults] = {}
    for experiment in experiments:
        store = ResultStore.of(experiment, Scope(), folder)
        table = store.results(experiment.cells(Scope()))
        tables[experiment.name] = ExperimentResults(experiment, table)
    records = [record for _, record in read_folder(folder)]
    used = {source for each in tables.values() for r in each.table for source in r.sources}
    current = {name: _Current(each.table) for name, each in tables.items()}
    left: dict[str, dict[object, _Superseded]] = {}
    for record in records:
        if record["source"] not in used:
            owner = _owner(record["source"], tables)
            found = _nearest(record, owner, current)
            same = (found.differences, *((c.group, c.row, c.column) for c in found.cells))
            left.setdefault(owner, {}).setdefault(same, found).records.append(record)
    superseded = {
        name: [r for one in some.values() for r in one.results()] for name, some in left.items()
    }
    return Collection(
        [replace(each, superseded=superseded.get(name, ())) for name, each in tables.items()],
        superseded.get("", ()),
        {_dataset(record["config"]) for record in records},
    )


class _Superseded(NamedTuple):
    """Runs that differ in the same way from what the same cells ask for."""

    differences: str
    cells: list[Cell]
    records: list[RunRecord]

    def results(self) -> list[CellResult]:
        """Return a result for each of the cells whose quantity the runs have."""
        runs = tuple(record for record in self.records if "failed" not in record)
        failures = tuple(record for record in self.records if "failed" in record)
        cells = [cell for cell in self.cells if _can_read(cell, runs)]
        return [
            CellResult(cell, runs, failures, self.differences)
            for cell in cells or [_plain_cell(self.records[0])]
        ]


def _can_read(cell: Cell, runs: Iterable[RunRecord]) -> bool:
    """Whether the runs have what the cell needs, which a measurement may have added."""
    try:
        for run in runs:
            cell.quantity.read(run)
    except (KeyError, IndexError, TypeError):
        return False
    return True


class _Current:
    """The runs that the cells of an experiment ask for, by data set and model."""

    def __init__(self, table: Table) -> None:
        self.runs: dict[tuple[str, str], dict[str, tuple[dict[str, Any], list[Cell]]]] = {}
        for cell in (result.cell for result in table):
            for config in cell.configs:
                settings = config.model_dump()
                runs = self.runs.setdefault((_dataset(settings), config.model), {})
                _, cells = runs.setdefault(config.model_dump_json(), (settings_of(settings), []))
                cells.append(cell)


def _dataset(config: Mapping[str, Any]) -> str:
    """Return the name of the whole data set, of ``echo-sssp@0.1`` that of ``echo-sssp``."""
    return str(config["dataset"]).partition("@")[0]


def _owner(source: str, names: Iterable[str]) -> str:
    """Return the experiment whose name, or whose name and more, is that of the file, or nothing."""
    stem = source.partition(".")[0]
    fitting = [name for name in names if f"{stem}-".startswith(f"{name}-")]
    return max(fitting, key=len, default="")


def _nearest(record: RunRecord, owner: str, current: Mapping[str, _Current]) -> _Superseded:
    """Compare a run with the nearest one that is asked for.

    It is one of the experiment that owns the file or, where that has none, of any other.
    """
    mine = settings_of_record(record)
    place = _dataset(mine), mine["model"]
    own = {owner: current[owner]} if owner and place in current[owner].runs else current
    found = [
        (_differences(mine, settings), name, cells)
        for name in own
        for settings, cells in current[name].runs.get(place, {}).values()
    ]
    if not found:
        return _Superseded(UNASKED, [_plain_cell(record)], [])
    differences, name, cells = min(found, key=lambda each: len(each[0]))
    if name != owner:
        cells = [replace(cell, group=f"{name}: {cell.group}") for cell in cells]
    others = [text for text in differences if text != ELSEWHERE]
    return _Superseded(", ".join(others) or "".join(differences[:1]) or REPEATED, cells, [])


def _plain_cell(record: RunRecord) -> Cell:
    """Return a cell with the test score of a run that fits no other."""
    metric = Quantity(f"test {record.get('metric')}", lambda run: run["test"], "equal", 4)
    return Cell(
        str(record["config"]["dataset"]), str(record["config"]["model"]), metric.name, metric
    )


def _differences(mine: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Describe each setting that is another one now."""
    texts = []
    for name in sorted(mine.keys() | now.keys()):
        if name not in now:
            texts.append(f"{name} {mine[name]} (gone)")
        elif mine.get(name) != now[name]:
            numbered = name in ("split", "seed")
            texts.append(ELSEWHERE if numbered else f"{name} {mine[name]} (now {now[name]})")
    return texts
