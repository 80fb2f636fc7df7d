"""The models that EEGNN is compared with: PyG's GCN, and Co-GNN, Polynormer and SAS-GNN."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch_geometric.nn as pyg
from torch import Tensor, nn
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.utils import to_torch_csr_tensor

from eegnn._spmm import CSR_DEVICES
from eegnn.graph import Adjacency
from eegnn.nn.model import GraphModel
from eegnn.nn.sas_gnn import SASGNN
from eegnn.zoo.cognn import CoGNN
from eegnn.zoo.gcn import GCN
from eegnn.zoo.polynormer import Polynormer

WIDTH = 32
DEFAULT, CSR = "GCN (PyG, edge_index)", "GCN (PyG, CSR)"
OURS: dict[str, Callable[..., GraphModel]] = {
    "GCN (ours)": GCN,
    "Co-GNN": CoGNN,
    "Polynormer": Polynormer,
    "SAS-GNN": SASGNN,
}
#: From the name of a model and its depth to a forward pass.
Calls = dict[tuple[str, int], Callable[[], Any]]


def pyg_gcn(in_channels: int, out_channels: int, num_layers: int, normalize: bool) -> nn.Module:
    """PyG's GCN with an encoder and a decoder, as all other models here have them.

    With ``normalize`` each layer normalises the adjacency matrix that it is given.
    """
    modules = [
        (nn.Linear(in_channels, WIDTH), "x -> x"),
        nn.ReLU(),
        (pyg.GCN(WIDTH, WIDTH, num_layers, normalize=normalize), "x, edges -> x"),
        nn.ReLU(),
        nn.Linear(WIDTH, out_channels),
    ]
    return pyg.Sequential("x, edges", modules)


def normalized_csr(adj: Adjacency) -> Tensor:
    """The matrix of GCN as PyTorch's CSR with int32 indices, PyG's fastest input on a CPU."""
    edge_index, weight = gcn_norm(adj.edge_index, None, adj.num_nodes)
    matrix = to_torch_csr_tensor(edge_index, weight, (adj.num_nodes, adj.num_nodes))
    rowptr, col = matrix.crow_indices().int(), matrix.col_indices().int()
    return torch.sparse_csr_tensor(rowptr, col, matrix.values(), matrix.shape)


def baselines(
    x: Tensor, adj: Adjacency, num_classes: int, num_layers: int, default: bool = True
) -> Calls:
    """Return forward passes of all models of this depth, without gradients.

    With ``default`` also GCN with ``edge_index``, PyG's default, which is slow on large graphs.
    """
    if adj.device.type not in CSR_DEVICES:
        raise ValueError(f"device must multiply CSR matrices for PyG's GCN, got {adj.device}")
    torch.manual_seed(0)
    sizes = (x.size(1), num_classes, num_layers)
    models: dict[str, tuple[nn.Module, Any]] = {}
    if default:
        models[DEFAULT] = pyg_gcn(*sizes, normalize=True), adj.edge_index
    models[CSR] = pyg_gcn(*sizes, normalize=False), normalized_csr(adj)
    for name, model in OURS.items():
        models[name] = model(x.size(1), WIDTH, num_classes, num_layers=num_layers), adj
    return {
        (name, num_layers): partial(_forward, model.to(x.device).eval(), x, edges)
        for name, (model, edges) in models.items()
    }


@torch.no_grad()
def _forward(model: nn.Module, x: Tensor, edges: Any) -> Any:
    return model(x, edges)
