"""Answers for a few nodes of a large graph: latency against the whole graph and PyG's GCN."""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import isqrt
from pathlib import Path

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from torch_geometric.data import Data
from torch_geometric.nn import GCN
from torch_geometric.utils import k_hop_subgraph, subgraph

from eegnn.bench.process import in_new_process, resident_bytes
from eegnn.bench.rows import BenchmarkRow
from eegnn.data.minesweeper import minesweeper
from eegnn.data.powerlaw import powerlaw
from eegnn.data.powerlaw_files import write_powerlaw
from eegnn.engine.blocked import cut_in_order, infer
from eegnn.graph import Adjacency
from eegnn.nn.eegnn import EEGNN
from eegnn.nn.exits import Exits
from eegnn.source import MappedGraph

WIDTH, LAYERS = 32, 20
#: EEGNN is trained on what is around a node, about so many nodes, with this price of a step.
TRAINING_NODES, EPOCHS, COST = 5000, 100, 0.02
#: Seconds after which a method is not asked again, nor for more nodes if a query takes as long.
ENOUGH = 10.0
#: Nodes that a query may read of a graph in files, and nodes of its blocks.
MAX_NODES, BLOCK = 100_000, 10_000

GRAPHS: dict[str, Callable[[int], Data]] = {
    "grid": lambda nodes: minesweeper(isqrt(nodes)),
    "power law": powerlaw,
}


@dataclass(frozen=True)
class OnDemandRow(BenchmarkRow):
    """Queries of one size by one method; seconds of CPU time."""

    title = f"Answers for a few nodes, CPU seconds, width {WIDTH}, {LAYERS} layers"
    columns = (
        *("graph", "nodes", "method", "asked", "queries", "p50", "p99", "touched"),
        *("exits", "last_exit", "memory"),
    )
    x_label, y_label = "nodes asked", "CPU seconds (median)"
    log_axes = True

    graph: str
    nodes: int
    method: str
    asked: int  #: nodes of a query
    queries: int  #: how many were timed
    p50: float
    p99: float
    touched: float | None = None  #: nodes read, the mean
    exits: float | None = None  #: mean exit layer
    last_exit: int | None = None  #: the largest exit layer
    #: Bytes that the process has in the end above what it began with, mapped files not counted.
    memory: int | None = None

    def points(self) -> Iterator[tuple[str, str, float, float]]:
        """The median against the nodes that are asked."""
        yield self.graph, self.method, self.asked, self.p50


def compare(
    nodes: int, asked: Sequence[int], queries: int, files: int | None = None
) -> list[OnDemandRow]:
    """Ask random nodes of a grid and of a power-law graph, of about so many nodes.

    GCN answers as PyG's users would let it: on ``k_hop_subgraph``, once with 20 layers and hops,
    once with two. The whole graph is timed once, with the largest query. With ``files``, a
    power-law graph of so many nodes is written to files first, and asked, then computed by blocks,
    in processes of their own.
    """
    rows = []
    for name, make in GRAPHS.items():
        data = make(nodes)
        rows += _compare(name, data, asked, queries)
    if files is not None:
        with tempfile.TemporaryDirectory() as folder:
            write_powerlaw(folder, files)
            rows += [in_new_process(_ask_files, Path(folder), queries)]
            rows += [in_new_process(_compute_files, Path(folder))]
    return rows


def _compare(name: str, data: Data, asked: Sequence[int], queries: int) -> list[OnDemandRow]:
    assert data.x is not None
    assert data.edge_index is not None
    x, edges, n = data.x, data.edge_index, data.x.size(0)
    adj = Adjacency.from_edge_index(edges, n)
    model = _trained(x, adj, data.y)
    gcn = {hops: GCN(x.size(1), WIDTH, hops, model.out_channels).eval() for hops in (2, LAYERS)}

    def whole(nodes: Tensor) -> Exits:
        return model.predict(x, adj)[1].select(nodes)

    def on_demand(nodes: Tensor) -> Exits:
        return model.predict(x, adj, nodes=nodes)[1]

    def of_hops(nodes: Tensor, hops: int) -> None:
        near, part, place, _ = k_hop_subgraph(
            nodes, hops, edges, relabel_nodes=True, num_nodes=n, directed=False
        )
        with torch.no_grad():
            gcn[hops](x[near], part)[place]

    methods: dict[str, Callable[[Tensor], Exits | None]] = {
        "EEGNN, on demand": on_demand,
        "EEGNN, whole graph": whole,
        "GCN, 2 layers on 2 hops": lambda nodes: of_hops(nodes, 2),
        f"GCN, {LAYERS} layers on {LAYERS} hops": lambda nodes: of_hops(nodes, LAYERS),
    }
    rows: list[OnDemandRow] = []
    for count in asked:
        for method, call in methods.items():
            is_slow = any(row.method == method and row.p50 > ENOUGH for row in rows)
            if not is_slow and (call is not whole or count == max(asked)):
                rows.append(_timed(name, n, method, call, count, queries))
    return rows


def _timed(
    graph: str,
    n: int,
    method: str,
    call: Callable[[Tensor], Exits | None],
    asked: int,
    queries: int,
) -> OnDemandRow:
    """Time queries of random nodes, the same for all methods, after one to warm up."""
    generator = torch.Generator().manual_seed(asked)
    seconds, found = [], []
    for number in range(queries + 1):
        nodes = torch.randint(n, (asked,), generator=generator)
        start = time.process_time()
        exits = call(nodes)
        taken = time.process_time() - start
        if number or taken > ENOUGH / 2:
            seconds.append(taken)
            found += [] if exits is None else [exits]
        if sum(seconds) > ENOUGH:
            break
    touched = [exits.touched.nodes for exits in found if exits.touched is not None]
    layer = torch.cat([exits.layer for exits in found]) if found else None
    row = OnDemandRow(
        *(graph, n, method, asked, len(seconds)),
        p50=statistics.median(seconds),
        p99=float(torch.tensor(seconds).quantile(0.99)),
        touched=statistics.mean(touched) if touched else None,
        exits=None if layer is None else float(layer.double().mean()),
        last_exit=None if layer is None else int(layer.max()),
    )
    print(row, file=sys.stderr, flush=True)  # those that follow may take minutes
    return row


def _trained(x: Tensor, adj: Adjacency, y: Tensor) -> EEGNN:
    """Train an EEGNN on the nodes around one in the middle of the graph."""
    torch.manual_seed(0)
    nodes = torch.tensor([adj.num_nodes // 2])
    while nodes.numel() < min(TRAINING_NODES, adj.num_nodes):
        nodes = k_hop_subgraph(nodes, 1, adj.edge_index, num_nodes=adj.num_nodes)[0]
    nodes = nodes.sort().values
    edges = subgraph(nodes, adj.edge_index, relabel_nodes=True, num_nodes=adj.num_nodes)[0]
    model = EEGNN(x.size(1), WIDTH, int(y.max()) + 1, LAYERS, continue_bias=1.0)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(EPOCHS):
        out, exits = model(x[nodes], edges, return_exits=True)
        loss = cross_entropy(out, y[nodes]) + COST * exits.cost
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model.eval()


def _untrained() -> EEGNN:
    """A model whose nodes leave at different layers, for graphs that are too large to train on."""
    torch.manual_seed(0)
    return EEGNN(16, WIDTH, 8, LAYERS, continue_bias=None)


def _ask_files(folder: Path, queries: int) -> OnDemandRow:
    """Ask single nodes of a graph in files."""
    model, before = _untrained(), resident_bytes("RssAnon")
    graph = MappedGraph(folder)

    def call(nodes: Tensor) -> Exits:
        return model.predict(None, graph, nodes=nodes, max_nodes=MAX_NODES)[1]

    row = _timed("files", graph.num_nodes, "EEGNN, on demand", call, 1, queries)
    return replace(row, memory=resident_bytes("RssAnon") - before)


def _compute_files(folder: Path) -> OnDemandRow:
    """Compute all nodes of a graph in files by blocks."""
    model, before = _untrained(), resident_bytes("RssAnon")
    x, adj = MappedGraph(folder).whole()
    start = time.process_time()
    out, exits = infer(model, x, cut_in_order(adj, BLOCK))
    taken, n = time.process_time() - start, adj.num_nodes
    mean, memory = float(exits.layer.double().mean()), resident_bytes("RssAnon") - before
    del out  # what it takes belongs to the memory
    last = int(exits.layer.max())
    return OnDemandRow("files", n, "EEGNN, by blocks", n, 1, taken, taken, n, mean, last, memory)
