from __future__ import annotations

import pytest
import torch
from torch_geometric.nn import GCNConv, GINConv, SAGEConv

from eegnn import Adjacency
from eegnn.nn.activations import ACTIVATIONS
from eegnn.nn.steps import ConvStep

EDGE_INDEX = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])


def states() -> torch.Tensor:
    return torch.randn(5, 4, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("activation", list(ACTIVATIONS))
@pytest.mark.parametrize(
    "conv", [GCNConv(4, 4), SAGEConv(4, 4), GINConv(torch.nn.Linear(4, 4))], ids=repr
)
def test_a_step_is_the_convolution_of_the_edge_list(conv: torch.nn.Module, activation: str) -> None:
    adj = Adjacency.from_edge_index(EDGE_INDEX, 5)
    expected = ACTIVATIONS[activation](conv(states(), EDGE_INDEX))
    torch.testing.assert_close(ConvStep(conv, activation)(states(), adj), expected)


def test_messages_flow_from_source_to_target() -> None:
    adj = Adjacency.from_edge_index(EDGE_INDEX, 5)
    row, col = adj.edge_index
    pairs = set(zip(row.tolist(), col.tolist(), strict=True))
    assert pairs == set(zip(*EDGE_INDEX.tolist(), strict=True))


def test_reset_draws_the_convolution_anew() -> None:
    step = ConvStep(SAGEConv(4, 4))
    before = [p.detach().clone() for p in step.parameters()]
    step.reset_parameters()
    assert not any(torch.equal(a, b) for a, b in zip(before, step.parameters(), strict=True))


def test_an_unknown_activation_is_refused() -> None:
    with pytest.raises(ValueError, match=r"activation must be one of .*, got 'gelu'"):
        ConvStep(GCNConv(4, 4), "gelu")


def test_repr() -> None:
    assert repr(ConvStep(GCNConv(4, 4), "tanh")) == "ConvStep(GCNConv(4, 4), activation='tanh')"
