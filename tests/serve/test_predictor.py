from __future__ import annotations

from pathlib import Path

import pytest
import torch

from eegnn.data.minesweeper import minesweeper
from eegnn.data.npz import write_npz
from eegnn.graph import Adjacency
from eegnn.serve.predictor import Predictor, open_predictor
from eegnn.train.prepare import prepare
from eegnn.train.run import RunFolder
from eegnn.train.start import configure, train


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A short run of EEGNN on a generated board, with standardised features."""
    folder = tmp_path_factory.mktemp("runs")
    write_npz(folder / "board.npz", minesweeper(12))
    settings = {"epochs": 2, "hidden_channels": 8, "num_layers": 4, "standardize": True}
    train(configure(str(folder / "board.npz"), "eegnn", None, settings), folder / "run")
    return folder / "run"


def probabilities(predictor: Predictor, nodes: list[int]) -> torch.Tensor:
    rows = predictor.predict(nodes)
    return torch.tensor([[row["probability_0"], row["probability_1"]] for row in rows])


def test_rows_are_those_of_the_whole_graph(run: Path) -> None:
    predictor, folder = open_predictor(run), RunFolder(run)
    data = prepare(folder.config()).graphs[0]
    out, exits = folder.model().predict(data.x, data.edge_index)
    nodes = [0, 99, 130]
    assert torch.allclose(probabilities(predictor, nodes), out[nodes].softmax(-1), atol=1e-5)
    rows = predictor.predict(nodes)
    assert [row["unit"] for row in rows] == nodes
    assert [row["exit_layer"] for row in rows] == exits.layer[nodes].tolist()


def test_a_new_node_is_answered_as_if_it_had_always_been_there(run: Path) -> None:
    predictor, folder = open_predictor(run), RunFolder(run)
    config = folder.config()
    raw = prepare(config.model_copy(update={"standardize": False})).graphs[0]
    data, n = prepare(config).graphs[0], raw.num_nodes
    assert raw.x is not None
    assert data.x is not None
    assert data.edge_index is not None
    added = torch.tensor([[n, n], [7, 8]])
    edges = torch.cat([data.edge_index, added, added.flip(0)], dim=1)
    x = torch.cat([data.x, data.x[3:4]])
    out, exits = folder.model().predict(x, Adjacency.from_edge_index(edges, n + 1))
    row = predictor.predict_new([(raw.x[3].tolist(), [7, 8])])[0]
    assert row["unit"] == 0
    assert row["exit_layer"] == int(exits.layer[n])
    assert row["probability_1"] == pytest.approx(float(out[n].softmax(-1)[1]), abs=1e-5)


def test_what_the_graph_does_not_have_is_refused_by_name(run: Path) -> None:
    predictor = open_predictor(run)
    with pytest.raises(ValueError, match="nodes must be below"):
        predictor.check([10**9], [])
    with pytest.raises(ValueError, match="neighbors must be below"):
        predictor.check([], [([0.0] * predictor.num_features, [10**9])])
    with pytest.raises(ValueError, match="x must have"):
        predictor.check([], [([0.0], [])])


def test_models_of_graphs_are_refused(tmp_path: Path) -> None:
    settings = {"epochs": 1, "hidden_channels": 4, "num_layers": 2}
    train(configure("echo-diam@0.01", "eegnn", None, settings), tmp_path / "run")
    with pytest.raises(ValueError, match="must hold a model for nodes"):
        open_predictor(tmp_path / "run")
