"""Memory of a training step against depth, with and without computing again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch
from rich.table import Table
from torch import Tensor
from torch.nn.functional import cross_entropy

from eegnn.bench.figure import draw_panels
from eegnn.bench.resident import resident
from eegnn.bench.shapes import Shape, shape
from eegnn.bench.timing import medians, use_threads
from eegnn.nn.eegnn import EEGNN
from eegnn.nn.model import GraphModel
from eegnn.nn.sas_gnn import SASGNN

WIDTH = 32
LAYERS = (10, 20, 50, 100)
MODELS: dict[str, Callable[..., GraphModel]] = {"SAS-GNN": SASGNN, "EEGNN": EEGNN}


@dataclass(frozen=True)
class Row:
    """One model and depth; bytes and seconds as (plain, recompute).

    Attributes:
        model, layers: which.
        states: bytes of the states of all layers, which are kept in any case.
        saved: bytes that autograd keeps for the backward pass.
        peak: growth of the resident size of a fresh process in a training step; 0 where the
            system does not tell.
        seconds: of a training step.
        difference: largest difference of a gradient, relative to the largest entry, in float64:
            in float32 it is the order of sums that shows.
    """

    model: str
    layers: int
    states: int
    saved: tuple[int, int]
    peak: tuple[int, int]
    seconds: tuple[float, float]
    difference: float

    @property
    def beyond(self) -> tuple[int, int]:
        """What is kept beyond the states."""
        return self.saved[0] - self.states, self.saved[1] - self.states

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**asdict(self), "beyond": self.beyond}


def compare(
    dataset: str = "minesweeper",
    layers: Sequence[int] = LAYERS,
    threads: int = 1,
    passes: int = 5,
    data_dir: Path | None = None,
) -> list[Row]:
    """Measure training steps of each of :data:`MODELS`.

    Args:
        dataset: whose graph.
        layers: depths.
        threads: for PyTorch.
        passes: timed steps, interleaved.
        data_dir: the data folder; ``None`` for the default.
    """
    graph = shape(dataset, data_dir)
    with use_threads(threads):
        return [_compare(graph, name, depth, passes) for name in MODELS for depth in layers]


def table(rows: Sequence[Row], threads: int) -> Table:
    """For the terminal."""
    out = Table(title=f"Training step, width {WIDTH}, {threads} thread(s); plain → recompute")
    columns = ("model", "layers", "states, MB", "kept beyond, MB", "peak, MB", "time", "difference")
    for column in columns:
        out.add_column(column, justify="left" if column == "model" else "right")
    for row in rows:
        out.add_row(
            row.model,
            str(row.layers),
            f"{row.states / 1e6:.0f}",
            " → ".join(f"{value / 1e6:.1f}" for value in row.beyond),
            " → ".join(f"{value / 1e6:.0f}" for value in row.peak),
            f"{row.seconds[1] / row.seconds[0]:.2f} ×",
            f"{row.difference:.0e}",
        )
    return out


def draw(rows: Sequence[Row], path: Path) -> None:
    """Draw what is kept beyond the states against depth, a panel for each model."""
    panels: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for row in rows:
        lines = panels.setdefault(row.model, {})
        for name, value in zip(("plain", "recompute"), row.beyond, strict=True):
            lines.setdefault(name, []).append((row.layers, value / 1e6))
    draw_panels(panels, path, "layers", "kept beyond the states, MB")


def saved_bytes(model: GraphModel, x: Tensor, edges: Any) -> int:
    """Bytes of all different tensors that a forward pass keeps for the backward pass."""
    kept: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        out = model(x, edges)
    del out
    return sum(kept.values())


def _compare(graph: Shape, name: str, layers: int, passes: int) -> Row:
    models = [_model(graph, name, layers, recompute) for recompute in (False, True)]
    y = torch.randint(graph.classes, (graph.nodes,), generator=torch.Generator().manual_seed(0))

    def step(model: GraphModel, x: Tensor) -> None:
        model.zero_grad()
        torch.manual_seed(1)
        cross_entropy(model(x, graph.adj), y).backward()

    timed = {"plain": lambda: step(models[0], graph.x), "again": lambda: step(models[1], graph.x)}
    found = medians(timed, passes)
    exact = [_model(graph, name, layers, recompute).double() for recompute in (False, True)]
    for model in exact:
        step(model, graph.x.double())
    plain, again = ([p.grad for p in model.parameters()] for model in exact)
    saved = [saved_bytes(model, graph.x, graph.adj) for model in models]
    # A fresh process for each, since the largest resident size of a process never falls.
    with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as pool:
        given = (graph.x, graph.adj.edge_index, graph.classes, name, layers)
        peak = [pool.submit(_peak, *given, recompute).result() for recompute in (False, True)]
    return Row(
        name,
        layers,
        layers * graph.nodes * WIDTH * 4,
        (saved[0], saved[1]),
        (peak[0], peak[1]),
        (found["plain"], found["again"]),
        max(_difference(a, b) for a, b in zip(plain, again, strict=True)),
    )


def _model(graph: Shape, name: str, layers: int, recompute: bool) -> GraphModel:
    torch.manual_seed(0)
    return MODELS[name](graph.x.size(1), WIDTH, graph.classes, layers, recompute=recompute)


def _difference(a: Tensor | None, b: Tensor | None) -> float:
    if a is None or b is None:
        return 0.0 if a is b else 1.0
    return float((a - b).abs().max() / a.abs().max().clamp(min=1e-12))


def _peak(
    x: Tensor, edge_index: Tensor, classes: int, name: str, layers: int, recompute: bool
) -> int:
    from eegnn.graph import Adjacency

    torch.set_num_threads(1)
    adj = Adjacency.from_edge_index(edge_index, x.size(0))
    graph = Shape("", True, x, adj, classes)
    adj.propagate(torch.zeros(x.size(0), WIDTH))  # its values are no activations
    model = _model(graph, name, layers, recompute)
    # What is loaded when first used is no activation either.
    two = Adjacency.from_edge_index(torch.tensor([[0, 1], [1, 0]]), 2)
    model(x[:2], two).sum().backward()
    before = resident("VmRSS") or 0
    model(x, adj).sum().backward()
    return (resident("VmHWM") or 0) - before
