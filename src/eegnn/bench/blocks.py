"""One huge graph by blocks: memory and time against the number of nodes."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from eegnn.bench.process import in_new_process, resident_bytes
from eegnn.bench.rows import BenchmarkRow
from eegnn.data.files import read_problem
from eegnn.data.powerlaw import powerlaw
from eegnn.data.problem import Problem
from eegnn.engine.blocked import infer, partition
from eegnn.nn.eegnn import EEGNN
from eegnn.train.config import make_config
from eegnn.train.loop import Trainer
from eegnn.train.run import RunFolder

WIDTH, LAYERS = 32, 21
#: Up to this many nodes the whole graph is computed too, to compare.
WHOLE = 100_000


@dataclass(frozen=True)
class BlocksRow(BenchmarkRow):
    """One graph, in new processes; ``None`` for what was not computed."""

    title = f"EEGNN by blocks, bytes and seconds, width {WIDTH}, {LAYERS} layers"
    columns = (
        *("nodes", "blocks", "raw", "peak", "partition", "cpu", "cpu_per_node", "difference"),
        *("epoch_peak", "epoch_cpu"),
    )
    x_label, y_label = "nodes", ""

    nodes: int
    edges: int  #: in both directions
    blocks: int
    raw: int  #: bytes of features and ``edge_index``
    peak: int  #: the largest resident size of a process, above what it had with the raw data
    partition: float  #: CPU seconds to build and partition the graph, the median
    seconds: float  #: of inference by the clock, the median
    cpu: float  #: seconds of inference, the median
    exits: float  #: mean exit layer
    difference: float | None = None  #: the largest, of outputs to those of the whole graph
    other_exits: int | None = None  #: nodes whose exit layer is not that of the whole graph
    epoch_peak: int | None = None  #: of an epoch of training with its evaluation
    epoch_cpu: float | None = None

    @property
    def cpu_per_node(self) -> float:
        """CPU seconds of inference for one node."""
        return self.cpu / self.nodes

    def points(self) -> Iterator[tuple[str, str, float, float]]:
        """Memory and time against nodes."""
        yield "memory above the raw data, GB", "EEGNN", self.nodes, self.peak / 1e9
        yield "CPU seconds", "EEGNN", self.nodes, self.cpu


def compare(nodes: Sequence[int], passes: int, block: int, epoch: bool) -> list[BlocksRow]:
    """Generate ``powerlaw`` graphs, and measure inference of an EEGNN by blocks on each.

    Each pass is a process; the sizes take turns. A block has about ``block`` nodes. With ``epoch``
    an epoch is trained too, once.
    """
    if not resident_bytes("VmRSS"):
        raise OSError("this benchmark reads memory from /proc/self/status, so it needs Linux")
    with tempfile.TemporaryDirectory() as folder:
        graphs = [(_write(Path(folder), n), max(round(n / block), 1)) for n in nodes]
        measured = [[in_new_process(_inference, *graph) for graph in graphs] for _ in range(passes)]
        rows = []
        for graph, found in zip(graphs, zip(*measured, strict=True), strict=True):
            fields = found[0] | {"peak": max(one["peak"] for one in found)}
            for key in ("partition", "seconds", "cpu"):
                fields[key] = statistics.median(one[key] for one in found)
            if epoch:
                fields |= in_new_process(_epoch, *graph)
            rows.append(BlocksRow(**fields))
    return rows


def _write(folder: Path, nodes: int) -> Path:
    path = folder / f"{nodes}.npz"
    data = powerlaw(nodes)
    np.save(path.with_suffix(".x.npy"), data.x.numpy())
    np.savez(path, edge_index=data.edge_index.numpy(), y=data.y.numpy())
    return path


def _inference(path: Path, blocks: int) -> dict[str, Any]:
    """Fields of a :class:`BlocksRow` from one pass."""
    problem, memory = _read(path)
    data = problem.graphs[0]
    torch.manual_seed(0)
    # Without a preference for continue, nodes of an untrained model leave at different layers.
    sizes = (problem.in_channels, WIDTH, problem.out_channels, LAYERS)
    model = EEGNN(*sizes, continue_bias=None)
    start = time.process_time()
    parts = partition(data.edge_index, data.num_nodes, blocks)
    partitioned, clock = time.process_time(), time.perf_counter()
    out, exits = infer(model, data.x, parts)
    found = {
        "nodes": parts.num_nodes,
        "edges": parts.adj.num_edges,
        "blocks": blocks,
        "raw": data.x.nbytes + data.edge_index.nbytes,
        "seconds": time.perf_counter() - clock,
        "cpu": time.process_time() - partitioned,
        "partition": partitioned - start,
        "peak": resident_bytes("VmHWM") - memory,
        "exits": float(exits.layer.double().mean()),
    }
    if parts.num_nodes <= WHOLE:
        whole_out, whole_exits = model.predict(data.x, parts.adj)
        found["difference"] = float((whole_out - out).abs().max())
        found["other_exits"] = int((whole_exits.layer != exits.layer).sum())
    return found


def _epoch(path: Path, blocks: int) -> dict[str, Any]:
    """Memory and time of an epoch of training."""
    problem, memory = _read(path)
    settings = {"hidden_channels": WIDTH, "num_layers": LAYERS, "epochs": 1, "blocks": blocks}
    config = make_config({"dataset": "powerlaw"}, settings)
    with tempfile.TemporaryDirectory() as folder:
        start = time.process_time()
        Trainer(config, problem, RunFolder(Path(folder))).fit()
        cpu = time.process_time() - start
    return {"epoch_peak": resident_bytes("VmHWM") - memory, "epoch_cpu": cpu}


def _read(path: Path) -> tuple[Problem, int]:
    """Read all of the data; return it, and the resident size with it."""
    problem = read_problem(path)
    problem.graphs[0].x.sum()  # features are mapped from disk and not read before they are used
    return problem, resident_bytes("VmRSS")
