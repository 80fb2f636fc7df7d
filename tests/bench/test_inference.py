from __future__ import annotations

from pathlib import Path

import pytest
import torch

from eegnn.bench import inference
from eegnn.bench.inference import CSR, DEFAULT, normalized_csr, pyg_gcn
from tests.analysis.runs import trained
from tests.bench.inputs import small_graph
from tests.train.problems import graph_problem, node_problem


def test_every_model_is_measured_at_every_depth(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inference, "benchmark_graph", small_graph)
    rows = inference.compare(["tolokers"], [2, 3], passes=1)
    assert {row.layers for row in rows} == {2, 3}
    models = [row.model for row in rows if row.layers == 3]
    assert {DEFAULT, CSR, "Co-GNN", "Polynormer", "SAS-GNN", "EEGNN"} <= set(models)
    for row in rows:
        assert (row.updates is not None) == row.model.startswith("EEGNN")
        csr = next(one for one in rows if one.model == CSR and one.layers == row.layers)
        assert row.against_csr == csr.seconds / row.seconds
        assert len(list(row.points())) == (row.model != DEFAULT)


def test_exits_can_be_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inference, "benchmark_graph", small_graph)
    rows = inference.compare(["tolokers"], [40], passes=1, default=False)
    assert DEFAULT not in [row.model for row in rows]
    (early,) = (row for row in rows if "≤" in row.model)
    assert early.updates == inference.EARLY / 40


def test_a_trained_run_is_measured_on_its_own_graph(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = trained(tmp_path / "run", node_problem(), monkeypatch)
    rows = inference.compare_runs([run], passes=1)
    (own,) = (row for row in rows if row.model == "EEGNN, trained")
    assert (own.graph, own.real, own.nodes, own.layers) == ("run", True, 40, 4)
    assert own.mean_exit is not None
    assert 1 < own.mean_exit < 4


def test_a_run_on_many_graphs_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = trained(tmp_path / "run", graph_problem(), monkeypatch)
    with pytest.raises(ValueError, match="run must be of a model for the nodes of one graph"):
        inference.compare_runs([run], passes=1)


def test_both_inputs_of_pyg_give_the_same() -> None:
    graph = small_graph()
    plain = pyg_gcn(4, 2, num_layers=3, normalize=True).eval()
    ready = pyg_gcn(4, 2, num_layers=3, normalize=False).eval()
    ready.load_state_dict(plain.state_dict())
    expected = plain(graph.x, graph.adj.edge_index)
    matrix = normalized_csr(graph.adj)
    assert matrix.col_indices().dtype == torch.int32
    torch.testing.assert_close(ready(graph.x, matrix), expected)
