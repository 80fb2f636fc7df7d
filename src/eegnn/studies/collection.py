"""All runs of a folder of results: behind the cells of experiments, or superseded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from eegnn.studies.configs import whole_dataset
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
    asked = {name: _asked(each.table) for name, each in tables.items()}
    left: dict[str, dict[object, _Superseded]] = {}
    for record in records:
        if record["source"] not in used:
            owner = _owner(record["source"], tables)
            found = _nearest(record, owner, asked)
            same = (found.differences, *((c.group, c.row, c.column) for c in found.cells))
            left.setdefault(owner, {}).setdefault(same, found).records.append(record)
    superseded = {
        name: [r for one in some.values() for r in one.results()] for name, some in left.items()
    }
    return Collection(
        [replace(each, superseded=superseded.get(name, ())) for name, each in tables.items()],
        superseded.get("", ()),
        {whole_dataset(record["config"]["dataset"]) for record in records},
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


#: The runs that an experiment asks for, by data set and model: settings, and the cells they are in.
_Asked = dict[tuple[str, str], list[tuple[dict[str, Any], list[Cell]]]]


def _asked(table: Table) -> _Asked:
    runs: dict[str, tuple[dict[str, Any], list[Cell]]] = {}
    for cell in (result.cell for result in table):
        for config in cell.configs:
            settings = settings_of(config.model_dump())
            runs.setdefault(config.model_dump_json(), (settings, []))[1].append(cell)
    found: _Asked = {}
    for settings, cells in runs.values():
        place = whole_dataset(settings["dataset"]), settings["model"]
        found.setdefault(place, []).append((settings, cells))
    return found


def _owner(source: str, names: Iterable[str]) -> str:
    """Return the experiment whose name, or whose name and more, is that of the file, or nothing."""
    stem = source.partition(".")[0]
    fitting = [name for name in names if f"{stem}-".startswith(f"{name}-")]
    return max(fitting, key=len, default="")


def _nearest(record: RunRecord, owner: str, asked: Mapping[str, _Asked]) -> _Superseded:
    """Compare a run with the nearest one that is asked for.

    It is one of the experiment that owns the file or, where that has none, of any other.
    """
    mine = settings_of_record(record)
    place = whole_dataset(mine["dataset"]), mine["model"]
    found = [
        (_differences(mine, settings), name, cells)
        for name in ([owner] if owner and place in asked[owner] else asked)
        for settings, cells in asked[name].get(place, [])
    ]
    if not found:
        usual = settings_of({"dataset": mine["dataset"], "model": mine["model"]})
        own = [f"{name} {mine[name]}" for name in sorted(mine) if mine[name] != usual.get(name)]
        return _Superseded(", ".join([UNASKED, *own]), [_plain_cell(record)], [])
    differences, name, cells = min(found, key=lambda each: len(each[0]))
    if name != owner:
        cells = [replace(cell, group=f"{name}: {cell.group}") for cell in cells]
    others = [text for text in differences if text != ELSEWHERE]
    return _Superseded(", ".join(others) or "".join(differences[:1]) or REPEATED, cells, [])


def _plain_cell(record: RunRecord) -> Cell:
    """Return a cell with the test score of a run that fits no other."""
    name, config = f"test {record.get('metric')}", record["config"]
    metric = Quantity(name, lambda run: float(run.get("test", "nan")), "equal", 4)
    return Cell(str(config["dataset"]), str(config["model"]), name, metric)


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
