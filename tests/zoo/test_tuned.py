from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch_geometric.nn import GATConv, GCNConv, SAGEConv
from torch_geometric.utils import add_self_loops

from eegnn.zoo.tuned import TunedGNN
from tests.graphs import Pairs, both_ways
from tests.zoo.examples import GRAPHS, adjacency, ready, states


def pygs(conv: str, in_channels: int, ours: nn.Module) -> Any:
    layers: dict[str, nn.Module] = {
        "gcn": GCNConv(in_channels, 4),
        "sage": SAGEConv(in_channels, 4),
        "gat": GATConv(in_channels, 4, add_self_loops=False, bias=False),
    }
    layer = layers[conv].double()
    layer.load_state_dict(ours.state_dict())
    return layer


def by_the_authors(model: Any, x: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
    """The authors' forward pass, on edges to which they have added self-loops."""
    if model.linear_encoder:
        x = F.linear(x, model.encoder.weight, model.encoder.bias)
    for layer in model.layers:
        z = pygs(model.conv, x.size(1), layer.conv)(x, edges)
        if model.residual:
            z = z + layer.residual(x)
        x = F.relu(z if layer.norm is None else layer.norm(z))
    last = model.decoder.mlp.lins[0]
    return F.linear(x, last.weight, last.bias)


@pytest.mark.parametrize(("n", "pairs"), GRAPHS)
@pytest.mark.parametrize("conv", ["gcn", "sage", "gat"])
@pytest.mark.parametrize(
    "options",
    [
        {"residual": True, "conv_norm": "batch"},
        {"conv_norm": "layer", "linear_encoder": True},
        {"residual": True, "conv_dropout": 0.5},
    ],
)
def test_outputs_are_those_of_the_authors_model(
    conv: Any, options: dict[str, Any], n: int, pairs: Pairs
) -> None:
    model, x = ready(TunedGNN(3, 4, 2, 3, conv=conv, **options)), states(n, 3)
    edges, _ = add_self_loops(both_ways(pairs), num_nodes=n)
    expected = by_the_authors(model, x, edges)
    assert torch.allclose(model(x, adjacency(n, pairs)), expected, atol=1e-12)


def test_without_an_encoder_the_first_layer_maps_from_the_features() -> None:
    model = TunedGNN(3, 4, 2, 2)
    assert sum(p.numel() for p in model.parameters()) == (3 * 4 + 4) + (4 * 4 + 4) + (4 * 2 + 2)


def test_graphs_without_features_start_from_a_bias() -> None:
    model = ready(TunedGNN(0, 4, 2, 2))
    assert model(None, adjacency(3, [(0, 1)])).shape == (3, 2)
