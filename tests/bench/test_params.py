from __future__ import annotations

from pathlib import Path

from eegnn.bench import params


def test_counts_stand_beside_the_papers(tmp_path: Path) -> None:
    rows = params.compare()
    found = {(row.dataset, row.model, row.layers): (row.ours, row.paper) for row in rows}
    assert found["Minesweeper", "SAS-GNN", 20] == (2_432, 2_432)
    assert found["Questions", "GCN", 10] == (20_288, 20_288)
    assert len(rows) == 5 * 5 * 2
    assert params.table(rows).row_count == len(rows)
    params.draw(rows, tmp_path / "params.png")
    assert (tmp_path / "params.png").is_file()
