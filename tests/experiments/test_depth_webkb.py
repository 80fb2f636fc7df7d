from __future__ import annotations

import pytest

from eegnn.experiments.depth_webkb import CLAIMS, DATASETS, DEPTHS, ROWS, cells, findings
from eegnn.studies.experiment import CellResult, Scope


def table(shift: dict[tuple[str, int], float]) -> list[CellResult]:
    """Every cell at 80 ± √2 %, but for the points by which some are moved."""
    found = []
    for cell in cells(Scope()):
        moved = shift.get((cell.row, int(cell.column)), 0.0)
        lines = tuple({"test": (80 + moved + noise) / 100} for noise in (-1, 1))
        found.append(CellResult(cell, lines))
    return found


def test_all_models_share_width_and_epochs_and_each_its_settings_at_all_depths() -> None:
    configs = [config for cell in cells(Scope()) for config in cell.configs]
    assert len(configs) == len(DATASETS) * len(ROWS) * len(DEPTHS) * 10
    varying = {"split", "num_layers"}
    own = {config.model_dump_json(exclude=varying) for config in configs}
    assert len(own) == len(DATASETS) * len(ROWS)
    varying |= {"dataset", "model", "lr", "options"}
    assert len({config.model_dump_json(exclude=varying) for config in configs}) == 1


def test_the_step_of_sasgnn_alone_differs_from_data_set_to_data_set() -> None:
    configs = [config for cell in cells(Scope()) for config in cell.configs]
    steps = {(c.model, c.dataset): c.options.get("step_size") for c in configs}
    assert {steps["sasgnn", name] for name in ("texas", "wisconsin")} == {0.1}
    assert steps["sasgnn", "cornell"] == 0.02
    others = [c for c in configs if c.model != "sasgnn"]
    varying = {"dataset", "split", "num_layers"}
    assert len({c.model_dump_json(exclude=varying) for c in others}) == len(ROWS) - 1


@pytest.mark.parametrize(
    ("row", "shift", "holds"),
    [
        ("SAS-GNN", {4: 1.0}, True),  # s.d. √2
        ("SAS-GNN", {4: 1.0, 8: -1.0}, False),
        ("SAS-GNN", {8: 1.0, 4: -1.0}, False),
        ("A-DGN", {64: -2.0}, False),
        ("A-DGN", {2: -2.0}, False),
        ("GRAFF", {64: -2.0}, True),
        ("GRAFF", {8: -2.0}, False),
        ("GCN", {64: -14.0}, False),
        ("GCN", {64: -14.0, 2: 1.0}, True),
        ("GCN + residual", {64: -14.0, 2: 1.0}, True),
    ],
)
def test_what_the_paper_says_is_checked(row: str, shift: dict[int, float], holds: bool) -> None:
    found = list(findings(table({(row, depth): move for depth, move in shift.items()})))
    assert len(found) == len(DATASETS) * len(ROWS)
    assert {f.holds for f in found if f": {row} {CLAIMS[row][0]}" in f.text} == {holds}


def test_a_depth_that_is_missing_leaves_it_open() -> None:
    whole = table({})
    whole[-1] = CellResult(whole[-1].cell)
    assert [f.holds is None for f in findings(whole)] == [False] * 14 + [True]
