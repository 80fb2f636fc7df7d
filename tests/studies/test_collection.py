from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from eegnn.studies.collection import Collection, collect
from eegnn.studies.experiment import Cell, CellResult, Scope
from eegnn.studies.quantities import Quantity
from eegnn.train.config import Config
from tests.studies import tiny
from tests.studies.tiny import config
from tests.train.records import SUMMARY

OTHER = replace(tiny.EXPERIMENT, name="tiny-more", cells=lambda scope: tiny.cells(scope)[1:])


def write(path: Path, wanted: Config, test: float = 0.1, **more: Any) -> None:
    """Add a line; ``settings`` changes its configuration."""
    settings = wanted.model_dump() | more.pop("settings", {})
    with path.open("a") as file:
        file.write(
            json.dumps({**SUMMARY, "test": test, "metric": "mse", "config": settings, **more})
            + "\n"
        )


def superseded(found: Collection) -> dict[str, list[CellResult]]:
    lists = {each.experiment.name: list(each.superseded) for each in found.results}
    return {**lists, "": list(found.others)}


def test_each_line_is_behind_cells_or_superseded_once(tmp_path: Path) -> None:
    write(tmp_path / "tiny.jsonl", config("gcn", 0))
    write(tmp_path / "tiny.jsonl", config("gcn", 0, lr=0.5))
    write(tmp_path / "tiny-quick.jsonl", config("gcn", 0, lr=0.7))
    write(tmp_path / "tiny-more-1.jsonl", config("adgn", 0))
    write(tmp_path / "tiny-more-1.jsonl", config("adgn", 0))
    write(tmp_path / "else.jsonl", config("swan", 0))
    write(tmp_path / "tiny.failures.jsonl", config("gcn", 1, lr=0.5), failed="nan")
    found = collect([tiny.EXPERIMENT, OTHER], tmp_path)
    used = {source for each in found.results for r in each.table for source in r.sources}
    assert used == {"tiny.jsonl:1", "tiny-more-1.jsonl:1"}
    lists = superseded(found)
    assert {name: [r.sources for r in some] for name, some in lists.items()} == {
        "tiny": [["tiny.jsonl:2", "tiny.failures.jsonl:1"]],
        "tiny-more": [["tiny-more-1.jsonl:2"]],
        "": [["else.jsonl:1"]],
    }
    assert found.datasets == {"transfer-line-3"}


@pytest.mark.parametrize(
    ("wanted", "settings", "differs"),
    [
        (config("gcn", 1, lr=0.5), {}, "lr 0.5 (now 0.01)"),
        (config("gcn", 7), {}, "other splits or seeds"),
        (config("gcn", 7, lr=0.5), {}, "lr 0.5 (now 0.01)"),
        (
            config("gcn"),
            {"dataset": "transfer-line-3"},
            f"dataset transfer-line-3 (now {tiny.DATASET})",
        ),
        (config("gcn"), {"average": 0.5, "warmup": 0}, "average 0.5 (gone)"),
        (config("gcn"), {"options": {"lost": 1}}, "options.lost 1 (gone)"),
        (config("gcn"), {"options": {"dropout": 0.3}}, "options.dropout 0.3 (now 0.0)"),
    ],
)
def test_what_differs_from_the_nearest_run_of_today_is_said(
    wanted: Config, settings: dict[str, Any], differs: str, tmp_path: Path
) -> None:
    write(tmp_path / "tiny.jsonl", wanted, settings=settings)
    (found,) = superseded(collect([OTHER, tiny.EXPERIMENT], tmp_path))["tiny"]
    assert (found.superseded, found.cell.row, found.mean) == (differs, "GCN", -1.0)


def test_settings_of_version_01_that_changed_nothing_are_no_difference(tmp_path: Path) -> None:
    old = {"average": 0.0, "encoding_dim": 16, "full_depth_weight": 0.5, "cost_weight": 0.3}
    write(tmp_path / "tiny.jsonl", config("gcn"), settings=old)
    found = collect([tiny.EXPERIMENT], tmp_path)
    assert superseded(found)["tiny"] == []
    assert len(found.results[0].table[0].runs) == 1


def test_runs_that_differ_alike_are_one_result(tmp_path: Path) -> None:
    for split in (0, 1, 5):
        write(tmp_path / "tiny.jsonl", config("gcn", split, lr=0.5), 10.0**-split)
    (found,) = superseded(collect([tiny.EXPERIMENT], tmp_path))["tiny"]
    assert (len(found.runs), found.mean) == (3, -2.0)


def test_the_owner_of_a_file_is_asked_first_then_everyone(tmp_path: Path) -> None:
    write(tmp_path / "tiny-more.jsonl", config("gcn", lr=0.5))
    (found,) = superseded(collect([tiny.EXPERIMENT, OTHER], tmp_path))["tiny-more"]
    assert found.cell.group == "tiny: line"


def test_runs_that_fit_nowhere_have_their_scores_and_settings(tmp_path: Path) -> None:
    write(tmp_path / "tiny.jsonl", config("swan"), 0.25)
    write(tmp_path / "tiny.jsonl", config("swan", lr=0.5), 0.75)
    first, second = superseded(collect([tiny.EXPERIMENT], tmp_path))["tiny"]
    assert (first.cell.row, first.cell.quantity.name, first.mean) == ("swan", "test mse", 0.25)
    assert first.superseded == (
        "no experiment has this data set and model, epochs 2, hidden_channels 2, num_layers 1"
    )
    assert (second.mean, "lr 0.5" in second.superseded) == (0.75, True)


def test_a_quantity_that_old_runs_do_not_have_is_left_out(tmp_path: Path) -> None:
    measured = Quantity("measured", lambda run: run["measured"], "equal")

    def cells(scope: Scope) -> list[Cell]:
        gcn = tiny.cells(scope)[0]
        return [gcn, replace(gcn, column="measured", quantity=measured)]

    write(tmp_path / "tiny.jsonl", config("gcn", lr=0.5))
    (found,) = superseded(collect([replace(tiny.EXPERIMENT, cells=cells)], tmp_path))["tiny"]
    assert found.cell.column == "3"
