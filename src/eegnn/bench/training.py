"""A training step of SASGNN against the same mathematics by PyG's message passing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch_geometric.nn import SimpleConv
from torch_geometric.nn.conv.gcn_conv import gcn_norm

from eegnn.bench.inputs import skewed_graph
from eegnn.bench.rows import BenchmarkRow
from eegnn.bench.timing import medians
from eegnn.compute import CPU, Compute
from eegnn.data.minesweeper import minesweeper
from eegnn.graph import Adjacency
from eegnn.nn.sas_conv import SASConv
from eegnn.nn.sas_gnn import SASGNN

WIDTH, LAYERS = 32, 10


@dataclass(frozen=True)
class TrainingRow(BenchmarkRow):
    """One graph; times in seconds for forward and backward."""

    title = f"Training step of SASGNN in seconds, {LAYERS} layers, width {WIDTH}"
    columns = ("graph", "nodes", "edges", "ours", "scatter", "ratio", "difference")
    x_label, y_label, log_axes = "directed edges", "ms", True

    graph: str
    nodes: int
    edges: int
    ours: float
    scatter: float
    difference: float

    @property
    def ratio(self) -> float:
        """How many times faster ours is."""
        return self.scatter / self.ours

    def points(self) -> Iterator[tuple[str, str, float, float]]:
        """Time against the number of edges."""
        panel = "training step of SASGNN"
        yield panel, "ours", self.edges, 1e3 * self.ours
        yield panel, "PyG's message passing", self.edges, 1e3 * self.scatter


def graphs() -> dict[str, tuple[int, Tensor]]:
    """Name, number of nodes and edges of the graphs to measure on."""
    return {
        "size of Tolokers": (11_758, skewed_graph(11_758, 519_000)),
        "100 × 100 grid": (10_000, minesweeper().edge_index),
    }


def compare(passes: int = 5, compute: Compute = CPU) -> list[TrainingRow]:
    """Measure both on each of :func:`graphs`, alternating, and take medians."""
    return [_compare(name, n, edges, passes, compute) for name, (n, edges) in graphs().items()]


def _compare(
    name: str, num_nodes: int, edge_index: Tensor, passes: int, compute: Compute
) -> TrainingRow:
    torch.manual_seed(0)
    model = SASGNN(16, WIDTH, 2, num_layers=LAYERS).to(compute.device)
    x = torch.rand(num_nodes, 16).to(compute.device)
    adj = Adjacency.from_edge_index(edge_index, num_nodes).to(compute.device)
    normalized = gcn_norm(adj.edge_index, None, num_nodes, add_self_loops=False)
    forwards = {
        "ours": lambda: model(x, adj),
        "scatter": lambda: _by_scatter(model, x, *normalized),
    }
    difference = (forwards["ours"]() - forwards["scatter"]()).abs().max().item()
    calls = {key: training_step(forward, model) for key, forward in forwards.items()}
    return TrainingRow(
        name,
        num_nodes,
        edge_index.size(1),
        **medians(calls, passes, compute),
        difference=difference,
    )


def _by_scatter(model: SASGNN, x: Tensor, edge_index: Tensor, edge_weight: Tensor) -> Tensor:
    """Eq. 2 by PyG's default message passing: gather, weigh, scatter."""
    conv, propagate = model.convs[0], SimpleConv(aggr="sum")
    assert isinstance(conv, SASConv)
    h = model.encoder(x)
    omega, weight = conv.omega, conv.weight
    for _ in range(model.num_layers):
        received = propagate(h @ weight, edge_index, edge_weight)
        h = h + model.step_size * torch.tanh(received - torch.relu(h @ omega)).relu()
    return model.decoder(h)


def training_step(forward: Callable[[], Tensor], model: nn.Module) -> Callable[[], None]:
    """Return a call that computes a forward pass and the gradients of all weights."""

    def step() -> None:
        model.zero_grad()
        forward().square().mean().backward()

    return step
