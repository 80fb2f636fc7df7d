"""One huge graph by blocks: does memory follow the block, and time the nodes?"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from rich.table import Table

from eegnn.bench.figure import draw_panels
from eegnn.bench.resident import resident
from eegnn.bench.timing import use_threads
from eegnn.data.npz import read_npz
from eegnn.data.powerlaw import powerlaw
from eegnn.data.problem import Problem
from eegnn.engine.blocked import infer, partition
from eegnn.nn.eegnn import EEGNN
from eegnn.train.config import make_config
from eegnn.train.loop import Trainer
from eegnn.train.run import RunFolder

WIDTH, LAYERS = 32, 21
NODES = (100_000, 1_000_000)
#: Nodes of a block, for every size of graph.
BLOCK = 10_000
#: Up to this many nodes the whole graph is computed too, to compare.
WHOLE = 100_000
#: Heads as PyTorch draws them let nodes leave at different layers, without training.
HEADS = {"continue_bias": None}


@dataclass(frozen=True)
class Row:
    """One graph, in fresh processes.

    Attributes:
        nodes, edges, blocks: its size (edges in both directions), and what it is cut into.
        raw: bytes of features and ``edge_index``.
        peak: the largest resident size of a process, above what it had with the raw data.
        partition: CPU seconds to make the graph and cut it, the median.
        seconds, cpu: of inference, by the clock and of the processor, likewise.
        exits: mean exit layer.
        difference: of outputs, to those of the whole graph, at most; ``None`` if not computed.
        other_exits: nodes whose exit layer is another one.
        epoch_peak, epoch_cpu: of an epoch of training with its evaluation, if asked for.
    """

    nodes: int
    edges: int
    blocks: int
    raw: int
    peak: int
    partition: float
    seconds: float
    cpu: float
    exits: float
    difference: float | None = None
    other_exits: int | None = None
    epoch_peak: int | None = None
    epoch_cpu: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**asdict(self), "cpu_per_node": self.cpu / self.nodes}


def compare(
    nodes: Sequence[int] = NODES,
    threads: int = 1,
    passes: int = 3,
    block: int = BLOCK,
    epoch: bool = False,
) -> list[Row]:
    """Generate ``powerlaw`` graphs, and measure inference of an EEGNN by blocks on each.

    Args:
        nodes: sizes of graphs.
        threads: for PyTorch.
        passes: processes for each size, which take turns.
        block: nodes of a block, about.
        epoch: whether to train for an epoch too, once.
    """
    with tempfile.TemporaryDirectory() as folder:
        graphs = {_write(Path(folder), count): max(round(count / block), 1) for count in nodes}
        rounds = [
            [_fresh(_inference, path, threads, blocks) for path, blocks in graphs.items()]
            for _ in range(passes)
        ]
        rows = []
        for (path, blocks), found in zip(graphs.items(), zip(*rounds, strict=True), strict=True):
            trained = _fresh(_epoch, path, threads, blocks) if epoch else {}
            rows.append(Row(blocks=blocks, **_together(found), **trained))
    return rows


def table(rows: Sequence[Row], threads: int) -> Table:
    """For the terminal."""
    out = Table(title=f"EEGNN by blocks, width {WIDTH}, {LAYERS} layers, {threads} thread(s)")
    columns = ["nodes", "blocks", "raw MB", "peak MB", "cut s", "CPU s", "a node", "difference"]
    epoch = any(row.epoch_peak is not None for row in rows)
    for column in [*columns, *(["epoch MB", "CPU s"] if epoch else [])]:
        out.add_column(column, justify="right")
    first = rows[0].cpu / rows[0].nodes
    for row in rows:
        cells = [
            f"{row.nodes:,}",
            str(row.blocks),
            f"{row.raw / 1e6:.0f}",
            f"{row.peak / 1e6:.0f}",
            f"{row.partition:.1f}",
            f"{row.cpu:.1f}",
            f"{row.cpu / row.nodes / first:.2f} ×",
            "" if row.difference is None else f"{row.difference:.0e}",
        ]
        if row.epoch_peak is not None and row.epoch_cpu is not None:
            cells += [f"{row.epoch_peak / 1e6:.0f}", f"{row.epoch_cpu:.0f}"]
        out.add_row(*cells)
    return out


def draw(rows: Sequence[Row], path: Path) -> None:
    """Draw memory and time against nodes."""
    panels = {
        "memory above the raw data, GB": {"EEGNN": [(r.nodes, r.peak / 1e9) for r in rows]},
        "CPU seconds": {"EEGNN": [(r.nodes, r.cpu) for r in rows]},
    }
    draw_panels(panels, path, "nodes", "")


def _write(folder: Path, nodes: int) -> Path:
    path = folder / f"{nodes}.npz"
    data = powerlaw(nodes)
    np.save(path.with_suffix(".x.npy"), data.x.numpy())
    np.savez(path, edge_index=data.edge_index.numpy(), y=data.y.numpy())
    return path


def _together(found: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """One of several measurements: median times, the largest peak."""
    times = {
        key: statistics.median(one[key] for one in found) for key in ("partition", "seconds", "cpu")
    }
    return {**found[0], **times, "peak": max(one["peak"] for one in found)}


def _fresh(call: Callable[..., dict[str, Any]], *given: Any) -> dict[str, Any]:
    """Call in a new process, since the largest resident size of a process never falls."""
    with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as pool:
        return pool.submit(call, *given).result()


def _inference(path: Path, threads: int, blocks: int) -> dict[str, Any]:
    problem, base = _raw(path)
    data = problem.graphs[0]
    with use_threads(threads):
        torch.manual_seed(0)
        model = EEGNN(problem.in_channels, WIDTH, problem.out_channels, LAYERS, **HEADS)  # type: ignore[arg-type]
        start = time.process_time()
        parts = partition(data.edge_index, data.num_nodes, blocks)
        cut, clock, start = time.process_time() - start, time.perf_counter(), time.process_time()
        out, exits = infer(model, data.x, parts)
        seconds, cpu = time.perf_counter() - clock, time.process_time() - start
        found = {
            "nodes": parts.num_nodes,
            "edges": parts.adj.num_edges,
            "raw": data.x.nbytes + data.edge_index.nbytes,
            "peak": _memory("VmHWM") - base,
            "partition": cut,
            "seconds": seconds,
            "cpu": cpu,
            "exits": float(exits.layer.double().mean()),
        }
        if parts.num_nodes <= WHOLE:
            whole, others = model.predict(data.x, parts.adj)
            found["difference"] = float((whole - out).abs().max())
            found["other_exits"] = int((others.layer != exits.layer).sum())
    return found


def _epoch(path: Path, threads: int, blocks: int) -> dict[str, Any]:
    problem, base = _raw(path)
    settings = {"hidden_channels": WIDTH, "num_layers": LAYERS, "epochs": 1, "blocks": blocks}
    config = make_config({"dataset": "powerlaw"}, settings)
    with use_threads(threads), tempfile.TemporaryDirectory() as folder:
        start = time.process_time()
        Trainer(config, problem, RunFolder(Path(folder))).fit()
        cpu = time.process_time() - start
    return {"epoch_peak": _memory("VmHWM") - base, "epoch_cpu": cpu}


def _raw(path: Path) -> tuple[Problem, int]:
    """Open the data and look at all of it; return it, and the resident size with it."""
    problem = read_npz(path)
    problem.graphs[0].x.sum()
    return problem, _memory("VmRSS")


def _memory(field: Literal["VmRSS", "VmHWM"]) -> int:
    found = resident(field)
    if found is None:
        raise OSError(f"the system does not tell {field}: this measurement needs Linux")
    return found
