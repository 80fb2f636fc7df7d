from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from eegnn.io import MODELS
from eegnn.studies.experiment import Scope
from eegnn.studies.store import ResultStore, key_of
from eegnn.train.config import Config
from eegnn.train.models import NAMES
from eegnn.train.run import RunFolder
from tests.studies import tiny
from tests.studies.tiny import config
from tests.train.records import SUMMARY


def write(path: Path, settings: dict[str, Any], test: float) -> None:
    with path.open("a") as file:
        file.write(json.dumps({**SUMMARY, "test": test, "config": settings}) + "\n")


def score(store: ResultStore, wanted: Config) -> float | None:
    line = store.find(wanted)
    return None if line is None else line["test"]


def with_options(model: str = "adgn", **options: Any) -> Config:
    return config(model).model_copy(update={"options": options})


def test_keys_are_those_of_the_resolved_settings() -> None:
    assert key_of(config(split=1)) == key_of(config(split=1))
    assert key_of(config(split=1)) != key_of(config(split=1, lr=0.02))
    usual = MODELS["ADGN"].defaults()["step_size"]
    assert key_of(with_options()) == key_of(with_options(step_size=usual))
    assert key_of(with_options()) != key_of(with_options(step_size=usual / 2))


@pytest.mark.parametrize("model", NAMES)
def test_the_cost_of_exits_decides_runs_of_models_that_learn_them(model: str) -> None:
    edges = torch.tensor([[0, 1], [1, 0]])
    built = MODELS[NAMES[model]](4, 8, 2, num_layers=3).train()
    _, exits = built(torch.ones(2, 4), edges, return_exits=True)
    free = config(model)
    paid = free.model_copy(update={"cost_weight": 0.5})
    assert (key_of(free) != key_of(paid)) == exits.cost.requires_grad


def test_a_run_keeps_the_defaults_it_was_done_with(tmp_path: Path) -> None:
    about = {"config": with_options().model_dump(), "options": {"step_size": 0.123}}
    line = {**SUMMARY, "test": 0.1, **about}
    (tmp_path / "old.jsonl").write_text(json.dumps(line) + "\n")
    store = ResultStore(tmp_path, "mine")
    assert store.find(with_options()) is None
    assert store.find(with_options(step_size=0.123)) is not None
    (tmp_path / "old.jsonl").write_text("")
    folder = RunFolder(tmp_path / "run")
    folder.start(with_options(gamma=0.5), "classification")
    options = json.loads((folder.path / "config.json").read_text())["options"]
    assert options["gamma"] == 0.5
    assert options["step_size"] == MODELS["ADGN"].defaults()["step_size"]
    assert "hidden_channels" not in options


def test_results_are_found_in_every_file_and_the_own_one_grows(tmp_path: Path) -> None:
    write(tmp_path / "other.jsonl", config(split=1).model_dump(), 0.1)
    store = ResultStore(tmp_path, "mine")
    assert (score(store, config(split=1)), score(store, config(split=2))) == (0.1, None)
    write(tmp_path / "mine.jsonl", config(split=2).model_dump(), 0.2)
    assert store.missing([config(split=2)])
    store.refresh()
    assert score(store, config(split=2)) == 0.2


def test_quick_runs_count_for_quick_versions_alone(tmp_path: Path) -> None:
    write(tmp_path / "other-quick.jsonl", config(split=1).model_dump(), 0.1)
    write(tmp_path / "other.jsonl", config(split=2).model_dump(), 0.2)
    full, quick = ResultStore(tmp_path, "mine"), ResultStore(tmp_path, "mine-quick")
    assert (score(full, config(split=1)), score(full, config(split=2))) == (None, 0.2)
    assert (score(quick, config(split=1)), score(quick, config(split=2))) == (0.1, None)


def test_settings_that_came_later_have_their_defaults(tmp_path: Path) -> None:
    settings = config().model_dump()
    del settings["encoding"]
    write(tmp_path / "old.jsonl", settings, 0.3)
    write(tmp_path / "old.jsonl", {**settings, "gone": 1}, 0.4)
    assert score(ResultStore(tmp_path, "mine"), config()) == 0.3


def test_of_equal_runs_the_first_counts(tmp_path: Path) -> None:
    for test in (0.5, 0.6):
        write(tmp_path / "mine.jsonl", config().model_dump(), test)
    assert score(ResultStore(tmp_path, "mine"), config()) == 0.5


def test_a_run_that_cannot_be_trained_is_remembered_as_such(tmp_path: Path) -> None:
    ResultStore(tmp_path / "new", "mine").add({"failed": "nan", "config": config().model_dump()})
    store = ResultStore(tmp_path / "new", "mine")
    record = store.find(config())
    assert record is not None
    assert record["failed"] == "nan"
    assert store.missing([config(), config(split=1)]) == [config(split=1)]
    (gcn, _) = store.results(tiny.cells(Scope(splits=(0,))))
    assert (gcn.runs, len(gcn.failures)) == ((), 1)


def test_a_line_is_known_by_its_place_which_is_not_written(tmp_path: Path) -> None:
    write(tmp_path / "other.jsonl", config(split=1).model_dump(), 0.1)
    write(tmp_path / "other.jsonl", config(split=2).model_dump(), 0.2)
    record = ResultStore(tmp_path, "mine").find(config(split=2))
    assert record is not None
    assert record["source"] == "other.jsonl:2"
    ResultStore(tmp_path / "new", "mine").add(record)
    assert "source" not in (tmp_path / "new" / "mine.jsonl").read_text()
