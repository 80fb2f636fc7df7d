from __future__ import annotations

from pathlib import Path

import pytest
import torch

from eegnn import Adjacency
from eegnn.bench import inference
from eegnn.bench.peers import CSR, DEFAULT, PyGGCN, normalised_csr
from eegnn.bench.shapes import Shape, skewed_graph


def small(name: str = "tolokers", data_dir: Path | None = None) -> Shape:
    adj = Adjacency.from_edge_index(skewed_graph(200, 600), 200)
    x = torch.rand(200, 4, generator=torch.Generator().manual_seed(0))
    return Shape(name, False, x, adj, 2)


def test_both_paths_of_pyg_compute_the_same() -> None:
    graph = small()
    torch.manual_seed(0)
    plain = PyGGCN(4, 2, 3, normalize=True).eval()
    ready = PyGGCN(4, 2, 3, normalize=False).eval()
    ready.load_state_dict(plain.state_dict())
    expected = plain(graph.x, graph.adj.edge_index)
    torch.testing.assert_close(ready(graph.x, normalised_csr(graph.adj)), expected)


def test_every_model_is_measured_at_every_depth(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(inference, "shape", small)
    rows = inference.compare(["tolokers"], [2, 3], passes=1)
    assert {row.layers for row in rows} == {2, 3}
    models = [row.model for row in rows if row.layers == 3]
    assert {DEFAULT, CSR, "Co-GNN", "Polynormer", "SAS-GNN", "EEGNN"} <= set(models)
    for row in rows:
        assert (row.updates is not None) == row.model.startswith("EEGNN")
    (shallow,) = (
        row for row in inference.compare(["tolokers"], [40], passes=1) if "≤" in row.model
    )
    assert shallow.updates == inference.EARLY / 40
    assert inference.table(rows, 1).row_count == len(rows)
    (first, *_) = inference.summary(rows)
    csr = next(row for row in rows if row.model == CSR and row.layers == 2)
    own = next(row for row in rows if row.model == "EEGNN" and row.layers == 2)
    assert first[CSR] == pytest.approx(csr.seconds / own.seconds)
    inference.draw(rows, tmp_path / "new" / "inference.png")
    assert (tmp_path / "new" / "inference.png").stat().st_size > 1_000
