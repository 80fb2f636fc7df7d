from __future__ import annotations

from pathlib import Path

import pytest

from eegnn.data.registry import DATASETS
from eegnn.data.registry import find as find_dataset
from eegnn.experiments import registry
from eegnn.experiments.registry import EXPERIMENTS, by_cost, find, missing_data
from eegnn.io import MODELS
from eegnn.studies.experiment import NO_MODEL, CellResult, Scope
from eegnn.train.config import make_config
from eegnn.train.models import NAMES

SCOPES = {"full": Scope(), "quick": Scope(quick=True)}
every_experiment = pytest.mark.parametrize("name", EXPERIMENTS)
every_scope = pytest.mark.parametrize("scope", SCOPES)


@every_experiment
@every_scope
def test_its_runs_can_be_trained(name: str, scope: str) -> None:
    experiment = find(name)
    assert experiment.name == name
    for config in experiment.configs(SCOPES[scope]):
        name, family = config.dataset.partition("@")[0], config.dataset.partition("-")[0]
        assert name in DATASETS or family in ("echo", "transfer", "distances")
        if config.model == NO_MODEL:
            assert experiment.measurement is not None
            continue
        assert config.options.keys() <= MODELS[NAMES[config.model]].defaults().keys()


@every_experiment
@every_scope
def test_each_cell_has_a_place_of_its_own_and_runs_or_a_number(name: str, scope: str) -> None:
    cells = list(find(name).cells(SCOPES[scope]))
    places = [(cell.group, cell.row, cell.column) for cell in cells]
    assert len(set(places)) == len(places) > 0
    assert all(bool(cell.configs) == (cell.known is None) for cell in cells)
    for cell in cells:  # by these two the missing ones of a cell are told
        assert len({(config.split, config.seed) for config in cell.configs}) == len(cell.configs)


@every_experiment
def test_the_quick_version_is_cheaper_and_its_findings_need_runs(name: str) -> None:
    experiment = find(name)
    assert experiment.minutes[1] <= experiment.minutes[0]
    cells = list(experiment.cells(SCOPES["full"]))
    found = experiment.findings([CellResult(cell) for cell in cells])
    if all(cell.configs for cell in cells):
        assert all(finding.holds is None for finding in found)


#: A run that has everything that any experiment reads.
RECORD = {
    "pairs": {"ap": 0.5, "hits@20": 0.5, "correlation": 0.5},
    "test": 0.5,
    "params": 100,
    "exits": {"min": 1, "median": 2.0, "mean": 2.5, "max": 4, "histogram": [0, 1, 2, 0, 1]},
    "oracle": {"latest": 0.7, "earliest": 0.6, "confident": 0.65},
    "dirichlet": [10.0] * 51,
    "sensitivity": [1.0] * 10,
    "exit_time": {"mean": 1.5, "counts": [1, 2], "edges": [0.0, 1.0, 2.0]},
    "inference_seconds": 0.01,
    "exit_rule": {
        "third_less": {"score": 0.5, "cost": 0.3},
        "small": {"score": 0.5, "cost": 0.3},
        "gap_closed": 0.1,
        "relation": 0.9,
    },
}


@every_experiment
def test_with_all_runs_each_cell_has_a_number_and_each_finding_is_decided(name: str) -> None:
    experiment = find(name)
    if name == "statistics":
        return  # see its own test
    table = [
        CellResult(cell, (RECORD,) * len(cell.configs)) for cell in experiment.cells(SCOPES["full"])
    ]
    assert all(m.mean is not None for m in table)
    assert all(m.verdict != "not run" for m in table)
    assert all(finding.holds is not None for finding in experiment.findings(table))


@every_experiment
def test_its_module_has_its_name_and_it_names_what_it_repeats(name: str) -> None:
    assert EXPERIMENTS[name] == f"eegnn.experiments.{name.replace('-', '_')}"
    shows = find(name).shows
    assert "tab:" in shows or "fig:" in shows or "the paper leaves" in shows


def test_all_walks_from_the_cheapest() -> None:
    minutes = [experiment.minutes[0] for experiment in by_cost()]
    assert len(minutes) == len(EXPERIMENTS)
    assert minutes == sorted(minutes)


def test_an_unknown_name_is_answered_with_those_that_are_close() -> None:
    with pytest.raises(ValueError, match="'depth-webbk': did you mean depth-webkb"):
        find("depth-webbk")


def test_data_that_needs_the_network_is_missed(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.delenv("EEGNN_MIRROR", raising=False)
    root = tmp_path_factory.mktemp("empty")
    found = missing_data(find("depth-webkb").configs(Scope()), root)
    assert found == ["texas", "wisconsin", "cornell"]
    monkeypatch.setitem(registry.EXPERIMENTS, "tiny", "tests.studies.tiny")
    assert missing_data(find("tiny").configs(Scope()), root) == []


def test_a_share_is_missed_where_the_whole_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("EEGNN_MIRROR", raising=False)
    config = make_config({"dataset": "peptides-func@0.1"})
    assert missing_data([config], tmp_path) == ["peptides-func@0.1"]
    (tmp_path / find_dataset("peptides-func").folder / "processed").mkdir(parents=True)
    assert missing_data([config], tmp_path) == []
