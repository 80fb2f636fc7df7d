"""Memory and time of a training step against depth, with and without ``recompute``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from eegnn.bench.inputs import BenchmarkGraph, benchmark_graph
from eegnn.bench.process import in_new_process, resident_bytes
from eegnn.bench.rows import BenchmarkRow
from eegnn.bench.timing import medians
from eegnn.compute import CPU, Compute
from eegnn.graph import Adjacency
from eegnn.nn.eegnn import EEGNN
from eegnn.nn.model import GraphModel
from eegnn.nn.sas_gnn import SASGNN

WIDTH = 32
MODELS: dict[str, Callable[..., GraphModel]] = {"SAS-GNN": SASGNN, "EEGNN": EEGNN}


@dataclass(frozen=True)
class MemoryRow(BenchmarkRow):
    """One model and depth; bytes and seconds as (plain, recompute)."""

    title = f"Training step, bytes and seconds, plain → recompute, width {WIDTH}"
    columns = ("model", "layers", "states", "beyond", "peak", "seconds")
    x_label, y_label = "layers", "kept beyond the states, MB"

    model: str
    layers: int
    states: int  #: bytes of the states of all layers
    saved: tuple[int, int]  #: bytes that autograd keeps for the backward pass
    #: Growth, in a training step, of the resident size of a new process, or of what it has
    #: allocated on a CUDA device; 0 where it is not reported.
    peak: tuple[int, int]
    seconds: tuple[float, float]  #: of a training step

    @property
    def beyond(self) -> tuple[int, int]:
        """Bytes that are kept beyond the states."""
        return self.saved[0] - self.states, self.saved[1] - self.states

    def points(self) -> Iterator[tuple[str, str, float, float]]:
        """What is kept beyond the states against depth, a panel for each model."""
        for line, value in zip(("plain", "recompute"), self.beyond, strict=True):
            yield self.model, line, self.layers, value / 1e6


def compare(
    dataset: str,
    layers: Sequence[int],
    passes: int = 5,
    data_dir: Path | None = None,
    compute: Compute = CPU,
) -> list[MemoryRow]:
    """Measure training steps of each of :data:`MODELS` at these depths, on one graph."""
    graph = benchmark_graph(dataset, data_dir).to(compute.device)
    return [_compare(graph, name, depth, passes, compute) for name in MODELS for depth in layers]


def saved_bytes(model: GraphModel, x: Tensor, adj: Adjacency) -> int:
    """Return the bytes of all different tensors that a forward pass keeps for the backward pass."""
    kept: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        out = model(x, adj)  # held until all is counted, so that no address is used twice
    del out
    return sum(kept.values())


def _compare(
    graph: BenchmarkGraph, name: str, layers: int, passes: int, compute: Compute
) -> MemoryRow:
    x, adj = graph.x, graph.adj
    make = partial(_model, name, x.size(1), graph.num_classes, layers)
    plain, recompute = models = make(False).to(x.device), make(True).to(x.device)
    steps = {model: partial(_training_step, model, x, adj) for model in models}
    seconds = medians(steps, passes, compute)
    inputs = (x.cpu(), adj.edge_index.cpu(), name, graph.num_classes, layers)
    peak = partial(in_new_process, _peak, compute, *inputs)
    return MemoryRow(
        name,
        layers,
        states=layers * adj.num_nodes * WIDTH * 4,
        saved=(saved_bytes(plain, x, adj), saved_bytes(recompute, x, adj)),
        peak=(peak(False), peak(True)),
        seconds=(seconds[plain], seconds[recompute]),
    )


def _model(
    name: str, in_channels: int, num_classes: int, layers: int, recompute: bool
) -> GraphModel:
    torch.manual_seed(0)
    return MODELS[name](in_channels, WIDTH, num_classes, layers, recompute=recompute)


def _training_step(model: GraphModel, x: Tensor, adj: Adjacency) -> None:
    model.zero_grad()
    out = model(x, adj)
    labels = torch.arange(out.size(0), device=out.device) % out.size(1)
    cross_entropy(out, labels).backward()


def _peak(
    compute: Compute,
    x: Tensor,
    edge_index: Tensor,
    name: str,
    num_classes: int,
    layers: int,
    recompute: bool,
) -> int:
    x, adj = x.to(compute.device), Adjacency.from_edge_index(edge_index, x.size(0))
    adj = adj.to(compute.device)
    adj.propagate(x.new_zeros(x.size(0), WIDTH))  # the values of its matrix are no activations
    model = _model(name, x.size(1), num_classes, layers, recompute).to(compute.device)
    # Libraries that are loaded when first used are no activations either.
    two_nodes = Adjacency.from_edge_index(torch.tensor([[0, 1], [1, 0]]), 2).to(compute.device)
    with compute.autocast():
        model(x[:2], two_nodes).sum().backward()
        before = _bytes_now(compute)
        model(x, adj).sum().backward()
    if compute.device.type == "cuda":
        return torch.cuda.max_memory_allocated() - before
    return resident_bytes("VmHWM") - before


def _bytes_now(compute: Compute) -> int:
    """Return what is in use before a step: of the device's memory, or of the process's."""
    if compute.device.type != "cuda":
        return resident_bytes("VmRSS")
    torch.cuda.reset_peak_memory_stats()
    return torch.cuda.memory_allocated()
