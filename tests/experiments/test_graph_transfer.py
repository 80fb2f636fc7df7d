from __future__ import annotations

from eegnn.experiments.graph_transfer import DISTANCES, ROWS, TOPOLOGIES, cells, findings
from eegnn.studies.experiment import CellResult, Scope

#: The paper's order.
ERRORS = {"A-DGN": 1e-6, "SWAN": 1e-5, "SAS-GNN": 1e-4, "GRAFF": 1e-1, "GCN": 1e-2}


def table(errors: dict[str, float]) -> list[CellResult]:
    return [CellResult(cell, ({"test": errors[cell.row]},)) for cell in cells(Scope())]


def test_there_are_as_many_layers_as_hops() -> None:
    found = list(cells(Scope()))
    assert len(found) == len(TOPOLOGIES) * len(ROWS) * len(DISTANCES)
    for cell in found:
        assert {config.num_layers for config in cell.configs} == {int(cell.column)}
        name = f"transfer-{cell.group}-{cell.column}@0.1"
        assert {config.dataset for config in cell.configs} == {name}
        assert len({config.split for config in cell.configs}) == len(cell.configs)


def test_the_papers_order_is_checked_on_each_topology() -> None:
    found = list(findings(table(ERRORS)))
    assert [finding.holds for finding in found] == [True] * 9
    assert "A-DGN -6.00, SWAN -5.00, SAS-GNN -4.00, GCN -2.00, GRAFF -1.00" in found[0].text
    found = list(findings(table({**ERRORS, "SAS-GNN": 3e-6})))
    assert [finding.holds for finding in found] == [True, False, True] * 3


def test_a_distance_that_is_missing_leaves_it_open() -> None:
    whole = table(ERRORS)
    place = next(i for i, m in enumerate(whole) if m.cell.row == "SWAN")
    whole[place] = CellResult(whole[place].cell)
    assert [finding.holds for finding in list(findings(whole))[:3]] == [True, None, True]
