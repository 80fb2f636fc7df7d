from __future__ import annotations

from typing import Any

import pytest
import torch

from eegnn import Adjacency, SASConv
from eegnn.engine.step import InPlaceStep
from eegnn.nn.sas_conv import SASStep
from eegnn.subgraph import neighborhood

CONVS: dict[str, dict[str, Any]] = {
    "the paper's": {},
    "edge features": {"edge_dim": 2},
    "tanh": {"activation": "tanh"},
    "inner tanh": {"inner_activation": "tanh"},
    "norm": {"norm": "layer"},
}
EDGES = torch.tensor([[0, 1, 1, 2, 2, 3, 4, 0], [1, 0, 2, 1, 3, 2, 0, 4]])


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-6), (torch.float64, 1e-14)])
@pytest.mark.parametrize("name", CONVS)
def test_a_step_in_place_adds_tau_times_delta(
    name: str, dtype: torch.dtype, tolerance: float
) -> None:
    torch.manual_seed(0)
    conv = SASConv(20, **CONVS[name]).to(dtype).eval()
    adj = Adjacency.from_edge_index(EDGES, 6)
    h, tau = torch.randn(6, 20, dtype=dtype), torch.rand(6, dtype=dtype)
    attr = torch.randn(8, 2, dtype=dtype) if name == "edge features" else None
    with torch.no_grad():
        delta, step = conv(h, adj, attr), InPlaceStep(SASStep(conv, adj, attr))
        for size in (tau, 0.5):
            factor = size.unsqueeze(-1) if isinstance(size, torch.Tensor) else size
            expected, changed = h + factor * delta, h.clone()
            step(changed, adj, size)
            torch.testing.assert_close(changed, expected, rtol=0, atol=tolerance)
            step(changed, adj, size)  # the same buffer again
            again = expected + factor * conv(expected, adj, attr)
            torch.testing.assert_close(changed, again, rtol=0, atol=4 * tolerance)
        part, order = neighborhood(adj, torch.tensor([3, 0]))
        few = h[order]
        step(few, part, tau[:2])
        moved = h[[3, 0]] + tau[:2].unsqueeze(-1) * delta[[3, 0]]
        torch.testing.assert_close(few[:2], moved, rtol=0, atol=tolerance)
        assert torch.equal(few[2:], h[order][2:])
