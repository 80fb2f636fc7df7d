from __future__ import annotations

from pathlib import Path

import pytest

from eegnn.data.registry import DATASETS
from eegnn.experiments import statistics
from eegnn.studies.experiment import CellResult, Scope


def test_there_is_a_cell_for_each_number_of_the_papers_tables() -> None:
    cells = [cell for cell in statistics.cells(Scope()) if cell.paper is not None]
    echo = [cell for cell in cells if cell.group == statistics.ECHO_TABLE]
    # 5 · 6 heterophilic, 3 · 6 WebKB, 4 · 4 homophilic, 4 · 7 TU, 3 · 8 LRGB; 7 · 6 of ECHO
    assert (len(cells) - len(echo), len(echo)) == (116, 42)
    printed = {(cell.row, cell.column): cell.paper.mean for cell in cells if cell.paper}
    assert printed["Tolokers", "# edges"] == 1_038_000
    assert printed["# avg. edges", "REDDIT-MULTI-5K"] == 1_189.74
    assert printed["# features", "Coauthor Physics"] == 8_415
    assert printed["PascalVOC-SP", "Avg Shortest Path"] == 10.74
    assert printed["grid", "Avg Edges"] == 288.32


def test_every_data_set_is_counted() -> None:
    datasets = {config.dataset for cell in statistics.cells(Scope()) for config in cell.configs}
    graphs = {name for name in DATASETS if not name.endswith("-link")}
    assert datasets == {*graphs, "echo-sssp"}


def test_numbers_are_compared_as_printed() -> None:
    cell = next(c for c in statistics.cells(Scope()) if (c.row, c.column) == ("Cornell", "ξ_edge"))
    for found, verdict in ((0.1305, "equal"), (0.1399, "differs")):
        result = CellResult(cell, ({"statistics": {"homophily": found}},))
        assert result.verdict == verdict


def test_echo_is_counted_by_topology(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistics, "ECHO", "echo-sssp@0.01")
    run = {"statistics": statistics.measure("echo-sssp@0.01", tmp_path)}
    cells = [c for c in statistics.cells(Scope()) if c.group == statistics.ECHO_TABLE]
    found = {(c.row, c.column): c.quantity.read(run) for c in cells}
    assert found["Graph Topologies", "# Graphs"] == 144  # one for each topology and diameter
    assert found["lobster", "# Graphs"] == 24
    assert {value for (_, column), value in found.items() if column == "Avg Diam"} == {28.5}
    # A tree has an edge less than nodes, each with two ends.
    assert found["tree", "Avg Edges"] == pytest.approx(found["tree", "Avg Nodes"] - 1)
    # A ladder of d nodes a side has 3d − 2 edges, and d is its diameter.
    assert found["ladder", "Avg Nodes"] == 57
    assert found["ladder", "Avg Edges"] == 3 * 28.5 - 2
