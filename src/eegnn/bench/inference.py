"""Inference of a whole graph: GCN, Co-GNN, Polynormer, SAS-GNN and EEGNN at several depths."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch_geometric.nn as pyg
from torch import Tensor, nn
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.utils import to_torch_csr_tensor

from eegnn._spmm import CSR_DEVICES
from eegnn.analysis.run import open_run
from eegnn.bench.inputs import (
    BenchmarkGraph,
    benchmark_graph,
    paper_exit_layers,
    predict_with_fixed_exits,
)
from eegnn.bench.rows import BenchmarkRow
from eegnn.bench.timing import medians
from eegnn.compute import CPU, Compute
from eegnn.graph import Adjacency
from eegnn.nn.eegnn import EEGNN
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
#: All nodes of the second EEGNN leave after at most this many layers.
EARLY = 10


@dataclass(frozen=True)
class InferenceRow(BenchmarkRow):
    """One model on one graph."""

    title = f"Inference of the whole graph, width {WIDTH}"
    columns = ("graph", "real", "model", "layers", "seconds", "against_csr", "updates", "mean_exit")
    x_label, y_label, log_axes = "layers", "ms", True

    graph: str
    real: bool  #: whether the graph is the data set's own
    nodes: int
    edges: int
    model: str
    layers: int  #: depth, or budget
    seconds: float  #: the median pass
    against_csr: float  #: how many times faster than GCN on a CSR matrix of the same depth
    updates: float | None = None  #: layers computed, as a share of the budget, with exits
    mean_exit: float | None = None

    def points(self) -> Iterator[tuple[str, str, float, float]]:
        """Time against depth, a panel for each graph."""
        if self.model != DEFAULT:
            yield self.graph, self.model, self.layers, 1e3 * self.seconds


def compare(
    datasets: Sequence[str],
    layers: Sequence[int],
    passes: int = 20,
    data_dir: Path | None = None,
    default: bool = True,
    compute: Compute = CPU,
) -> list[InferenceRow]:
    """Measure all models on graphs of these data sets, EEGNN with the exit layers of the paper.

    Args:
        datasets: names from :data:`~eegnn.bench.inputs.PAPER_EXITS`.
        layers: depths.
        passes: timed passes of each model, interleaved.
        data_dir: the data folder.
        default: also GCN with ``edge_index``, PyG's default.
        compute: device and precision.
    """
    rows = []
    for name in datasets:
        graph = benchmark_graph(name, data_dir).to(compute.device)
        x, adj, calls = graph.x, graph.adj, Calls()
        for depth in layers:
            calls |= baselines(x, adj, graph.num_classes, depth, default)
            torch.manual_seed(0)
            model = EEGNN(x.size(1), WIDTH, graph.num_classes, depth).to(x.device)
            exit_layer = paper_exit_layers(name, adj.num_nodes, depth).to(x.device)
            for label, fixed in (
                ("EEGNN", exit_layer),
                (f"EEGNN, exits ≤ {EARLY}", exit_layer.clamp(max=EARLY)),
            ):
                calls[label, depth] = partial(predict_with_fixed_exits, model, x, adj, fixed)
        rows += _measure(graph, calls, passes, compute)
    return rows


def compare_runs(
    runs: Sequence[Path],
    passes: int = 20,
    data_dir: Path | None = None,
    default: bool = True,
    compute: Compute = CPU,
) -> list[InferenceRow]:
    """Measure trained models with exits on their own graph, against baselines of the same depth.

    The arguments but ``runs``, folders of models for nodes, are those of :func:`compare`.
    """
    rows = []
    for run in runs:
        model, batches = open_run(run, data_dir, compute)
        whole, depth = batches.whole(), model.num_layers
        if whole is None or whole.x is None:
            raise ValueError(f"run must be of a model for the nodes of one graph, got {run}")
        graph = BenchmarkGraph(run.name, True, whole.x.to_dense(), whole.adj, model.out_channels)
        calls = baselines(graph.x, graph.adj, graph.num_classes, depth, default)
        calls["EEGNN, trained", depth] = partial(model.predict, graph.x, graph.adj, whole.edge_attr)
        rows += _measure(graph, calls, passes, compute)
    return rows


def _measure(
    graph: BenchmarkGraph, calls: Calls, passes: int, compute: Compute
) -> list[InferenceRow]:
    """Time all models and depths in turns, so that depths can be compared too."""
    about = (graph.name, graph.real, graph.adj.num_nodes, graph.adj.num_edges)
    seconds = medians(calls, passes, compute)
    rows = []
    for (model, layers), time in seconds.items():
        updates = mean_exit = None
        if model.startswith("EEGNN"):
            _, exits = calls[model, layers]()
            mean_exit = float(exits.layer.cpu().double().mean())
            updates = len(exits.tau) / layers
        against_csr = seconds[CSR, layers] / time
        rows.append(InferenceRow(*about, model, layers, time, against_csr, updates, mean_exit))
    return rows


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
