"""The script that compares exits of nodes with exits of whole graphs."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from eegnn import Adjacency

SCRIPT = Path(__file__).parents[2] / "docs" / "examples" / "node_exits.py"


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    return runpy.run_path(str(SCRIPT))


def test_a_graph_answers_by_the_mean_of_the_states_that_its_nodes_left_with(
    script: dict[str, Any],
) -> None:
    torch.manual_seed(0)
    model = script["NodeExits"](4, 8, 3, 5, "node", continue_bias=0.5, head_layers=2)
    x, batch = torch.randn(9, 4), torch.tensor([0] * 4 + [1] * 5)
    edge_index = torch.tensor([[0, 1, 1, 2, 4, 5, 5, 6, 7, 8], [1, 0, 2, 1, 5, 4, 6, 5, 8, 7]])
    states: list[Tensor] = []

    class Identity(torch.nn.Identity):
        def forward(self, h: Tensor) -> Tensor:
            states.append(h)
            return h

    with torch.no_grad():
        adj = Adjacency.from_edge_index(edge_index, 9, batch=batch)
        model.eval().loop(model.encoder(x), adj, readout=Identity())
        means = torch.stack([states[0][:4].mean(dim=0), states[0][4:].mean(dim=0)])
        out, exits = model.predict(x, edge_index, batch=batch)
        assert torch.allclose(out, model.decoder(means), atol=1e-6)
    assert exits.layer.shape == (9,)


@pytest.mark.data
def test_both_kinds_of_exits_train(script: dict[str, Any]) -> None:
    for unit in ("graph", "node"):
        found = script["train"](unit, "enzymes", 0, epochs=1)
        assert found["epoch"] == 1
        assert 0 <= found["test"] <= 1
        assert 1 <= found["steps"] <= 10
