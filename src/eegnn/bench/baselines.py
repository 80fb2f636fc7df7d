"""What EEGNN is measured against."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.nn import GCNConv
from torch_geometric.nn.conv.gcn_conv import gcn_norm

from eegnn.graph import Adjacency
from eegnn.zoo.registry import ENTRIES, find

WIDTH = 32
DEFAULT, CSR = "GCN (PyG, edge_index)", "GCN (PyG, CSR)"


class PyGGCN(nn.Module):
    """GCN as PyG's users write it.

    Args:
        in_channels, out_channels: features and classes.
        num_layers: depth.
        normalize: whether each layer normalises the adjacency matrix it is given.
    """

    def __init__(
        self, in_channels: int, out_channels: int, num_layers: int, normalize: bool
    ) -> None:
        super().__init__()
        self.encoder = nn.Linear(in_channels, WIDTH)
        self.convs = nn.ModuleList(
            GCNConv(WIDTH, WIDTH, normalize=normalize) for _ in range(num_layers)
        )
        self.decoder = nn.Linear(WIDTH, out_channels)

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        """Return ``[n, out_channels]``; ``edges`` is ``edge_index`` or a sparse matrix."""
        h = self.encoder(x).relu()
        for conv in self.convs:
            h = conv(h, edges).relu()
        return self.decoder(h)


def normalised_csr(adj: Adjacency) -> Tensor:
    """The matrix of GCN as PyTorch's CSR with int32 indices, PyG's fastest input on a CPU."""
    n = adj.num_nodes
    edge_index, value = gcn_norm(adj.edge_index, None, n)
    assert isinstance(edge_index, Tensor)
    assert isinstance(value, Tensor)
    order = (edge_index[1] * n + edge_index[0]).argsort()
    count = torch.bincount(edge_index[1], minlength=n)
    rowptr = nn.functional.pad(count.cumsum(0), (1, 0)).int()
    return torch.sparse_csr_tensor(rowptr, edge_index[0, order].int(), value[order], (n, n))


def peers(
    x: Tensor, adj: Adjacency, classes: int, layers: int, default: bool = True
) -> dict[str, Callable[[], Any]]:
    """Forward passes of the rivals, without gradients: GCN both ways, Co-GNN, Polynormer, SAS-GNN.

    Args:
        x, adj: the graph.
        classes: outputs.
        layers: depth of all of them.
        default: also PyG's default path, which is slow on large graphs.
    """
    torch.manual_seed(0)
    plain = PyGGCN(x.size(1), classes, layers, normalize=True).eval()
    ready = PyGGCN(x.size(1), classes, layers, normalize=False).eval()
    edge_index, matrix = adj.edge_index, normalised_csr(adj)
    ways: dict[str, Callable[[], Any]] = {}
    if default:
        ways[DEFAULT] = lambda: plain(x, edge_index)
    ways[CSR] = lambda: ready(x, matrix)
    for label, name in (
        ("GCN (ours)", "gcn"),
        ("Co-GNN", "cognn"),
        ("Polynormer", "polynormer"),
        ("SAS-GNN", "sasgnn"),
    ):
        model = find(ENTRIES[name].home)(x.size(1), WIDTH, classes, num_layers=layers).eval()
        ways[label] = _pass(model, x, adj)
    return {label: _without_gradients(way) for label, way in ways.items()}


def _pass(model: nn.Module, x: Tensor, adj: Adjacency) -> Callable[[], Any]:
    return lambda: model(x, adj)


def _without_gradients(call: Callable[[], Any]) -> Callable[[], Any]:
    def run() -> Any:
        with torch.no_grad():
            return call()

    return run
