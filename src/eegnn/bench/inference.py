"""Inference of a whole graph: GCN, Co-GNN, Polynormer, SAS-GNN and EEGNN at several depths."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from rich.table import Table

from eegnn.analysis.run import open_run
from eegnn.bench.figure import draw_panels
from eegnn.bench.peers import CSR, DEFAULT, WIDTH, peers
from eegnn.bench.shapes import Shape, shape, stated_exits
from eegnn.bench.stated import StatedExits
from eegnn.bench.timing import medians, use_threads
from eegnn.nn.eegnn import EEGNN

LAYERS = (10, 20, 50, 100)
#: Exits of the second EEGNN are stated not to go beyond this layer.
EARLY = 10


@dataclass(frozen=True)
class Row:
    """One model on one graph.

    Attributes:
        graph, real, nodes, edges: the graph, and whether it is the data set's own.
        model: its name.
        layers: depth, or budget.
        seconds: the median pass.
        updates: the share of the budget that was computed: all nodes are, until the last one has
            left; ``None`` where there is no exit loop.
        mean_exit: of the exit layers; likewise.
    """

    graph: str
    real: bool
    nodes: int
    edges: int
    model: str
    layers: int
    seconds: float
    updates: float | None = None
    mean_exit: float | None = None


#: From the name of a model and its depth to a forward pass.
Ways = dict[tuple[str, int], Callable[[], Any]]


def compare(
    datasets: Sequence[str],
    layers: Sequence[int] = LAYERS,
    threads: int = 1,
    passes: int = 20,
    data_dir: Path | None = None,
    default: bool = True,
) -> list[Row]:
    """Measure all models on graphs of these data sets, EEGNN with stated exits.

    Args:
        datasets: names from :data:`~eegnn.bench.shapes.PAPER_EXITS`.
        layers: depths.
        threads: for PyTorch.
        passes: timed passes of each model, interleaved.
        data_dir: the data folder; ``None`` for the default.
        default: also PyG's default path.
    """
    rows = []
    with use_threads(threads):
        for name in datasets:
            graph = shape(name, data_dir)
            ways: Ways = {}
            for depth in layers:
                some = peers(graph.x, graph.adj, graph.classes, depth, default)
                exits = stated_exits(name, graph.nodes, depth)
                torch.manual_seed(0)
                model = EEGNN(graph.x.size(1), WIDTH, graph.classes, depth)
                for label, stated in (
                    ("EEGNN", exits),
                    (f"EEGNN, exits ≤ {EARLY}", exits.clamp(max=EARLY)),
                ):
                    some[label] = StatedExits(model, graph.x, graph.adj, stated)
                ways |= {(model, depth): call for model, call in some.items()}
            rows += _measure(graph, ways, passes)
    return rows


def compare_runs(
    runs: Sequence[Path],
    threads: int = 1,
    passes: int = 20,
    data_dir: Path | None = None,
    default: bool = True,
) -> list[Row]:
    """Measure trained models with exits on their own graph, against rivals of the same depth.

    Args:
        runs: folders of runs of models for nodes.
        threads, passes, data_dir, default: as in :func:`compare`.
    """
    rows = []
    with use_threads(threads):
        for run in runs:
            model, batches = open_run(run, data_dir)
            whole = batches.whole()
            if whole is None or whole.x is None:
                raise ValueError(f"run must be of a model for the nodes of one graph, got {run}")
            x, adj, edge_attr = whole.x, whole.adj, whole.edge_attr
            graph = Shape(run.name, True, x, adj, model.out_channels)
            ways = peers(x, adj, model.out_channels, model.num_layers, default)
            ways["EEGNN, trained"] = partial(model.predict, x, adj, edge_attr)
            of_run: Ways = {(name, model.num_layers): call for name, call in ways.items()}
            rows += _measure(graph, of_run, passes)
    return rows


def table(rows: Sequence[Row], threads: int) -> Table:
    """For the terminal; the ratio is to GCN on a CSR matrix, as deep."""
    out = Table(title=f"Inference of the whole graph, width {WIDTH}, {threads} thread(s)")
    for column in ("graph", "model", "layers", "ms", "against CSR GCN", "updates", "mean exit"):
        out.add_column(column, justify="left" if column in ("graph", "model") else "right")
    reference = {(row.graph, row.layers): row.seconds for row in rows if row.model == CSR}
    for row in rows:
        out.add_row(
            row.graph if row.real else f"{row.graph}, generated",
            row.model,
            str(row.layers),
            f"{1e3 * row.seconds:.1f}",
            f"{reference[row.graph, row.layers] / row.seconds:.2f} ×",
            "" if row.updates is None else f"{row.updates:.0%}",
            "" if row.mean_exit is None else f"{row.mean_exit:.1f}",
        )
    return out


def summary(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """For JSON: how many times faster each EEGNN is than each rival as deep."""
    found = []
    for row in (row for row in rows if row.model.startswith("EEGNN")):
        rivals = {
            other.model: other.seconds / row.seconds
            for other in rows
            if (other.graph, other.layers) == (row.graph, row.layers)
            and not other.model.startswith("EEGNN")
        }
        found.append({"graph": row.graph, "model": row.model, "layers": row.layers, **rivals})
    return found


def draw(rows: Sequence[Row], path: Path) -> None:
    """Draw time against depth, a panel for each graph."""
    panels: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for row in rows:
        if row.model != DEFAULT:
            lines = panels.setdefault(row.graph, {})
            lines.setdefault(row.model, []).append((row.layers, 1e3 * row.seconds))
    draw_panels(panels, path, "layers", "ms", log=True)


def as_dicts(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """For JSON."""
    return [asdict(row) for row in rows]


def _measure(graph: Shape, ways: Ways, passes: int) -> list[Row]:
    """All models and depths take turns, so that depths can be compared too."""
    found: dict[tuple[str, int], tuple[float, float]] = {}
    for (model, layers), call in ways.items():
        if model.startswith("EEGNN"):
            _, exits = call()
            mean = float(exits.layer.double().mean())
            found[model, layers] = exits.tau.size(0) / layers, mean
    about = (graph.name, graph.real, graph.nodes, graph.edges)
    return [
        Row(*about, model, layers, seconds, *found.get((model, layers), (None, None)))
        for (model, layers), seconds in medians(ways, passes).items()
    ]
