"""A training step of SASGNN and EEGNN as torch.compile makes it, against the same without it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from eegnn.bench.rows import BenchmarkRow
from eegnn.bench.timing import medians
from eegnn.bench.training import WIDTH, graphs, training_step
from eegnn.compute import CPU, Compute
from eegnn.graph import Adjacency
from eegnn.nn.eegnn import EEGNN
from eegnn.nn.sas_gnn import SASGNN

MODELS = {"SAS-GNN": SASGNN, "EEGNN": EEGNN}


@dataclass(frozen=True)
class CompiledRow(BenchmarkRow):
    """One graph and model; times in seconds for forward and backward."""

    title = f"Training step in seconds, eager and compiled, width {WIDTH}"
    columns = ("graph", "model", "layers", "eager", "compiled", "ratio", "compilation")
    x_label, y_label, log_axes = "layers", "ms", True

    graph: str
    model: str
    layers: int
    eager: float
    compiled: float
    compilation: float  #: the first step, which compiles

    @property
    def ratio(self) -> float:
        """How many times faster the compiled step is."""
        return self.eager / self.compiled

    def points(self) -> Iterator[tuple[str, str, float, float]]:
        """Time against depth, a panel for each graph."""
        yield self.graph, self.model, self.layers, 1e3 * self.eager
        yield self.graph, f"{self.model}, compiled", self.layers, 1e3 * self.compiled


def compare(layers: int = 21, passes: int = 20, compute: Compute = CPU) -> list[CompiledRow]:
    """Measure both models on the graphs of ``eegnn bench training``, in turns; without a break.

    Args:
        layers: depth, or budget.
        passes: timed steps of each.
        compute: device and precision.
    """
    return [
        _compare(graph, model, layers, passes, compute) for graph in graphs() for model in MODELS
    ]


def _compare(graph: str, name: str, layers: int, passes: int, compute: Compute) -> CompiledRow:
    torch.compiler.reset()
    torch.manual_seed(0)
    num_nodes, edge_index = graphs()[graph]
    x = torch.rand(num_nodes, 16).to(compute.device)
    adj = Adjacency.from_edge_index(edge_index, num_nodes).to(compute.device)
    model = MODELS[name](16, WIDTH, 2, layers).to(compute.device)
    compiled = torch.compile(model, fullgraph=True)
    steps = {
        "eager": training_step(lambda: model(x, adj), model),
        "compiled": training_step(lambda: compiled(x, adj), model),
    }
    steps["eager"]()  # the graph has its normalised values from here on
    start = time.perf_counter()
    steps["compiled"]()
    compilation = time.perf_counter() - start
    return CompiledRow(
        graph, name, layers, **medians(steps, passes, compute), compilation=compilation
    )
