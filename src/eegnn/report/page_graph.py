"""The data of the exit explorer: a graph to draw, and what each unit did at every layer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from eegnn.analysis.layers import outputs_by_layer
from eegnn.data.problem import Problem
from eegnn.graph import Adjacency
from eegnn.nn.model import GraphModel
from eegnn.report.page_layout import (
    Floats,
    Ints,
    board_side,
    grid_shape,
    sample_nodes,
    spring_layout,
    to_unit_square,
)
from eegnn.report.page_pack import pack, pack_share
from eegnn.subgraph import select_nodes
from eegnn.train.batches import Batches, MiniBatch

#: Nodes and edges that are drawn; a board of cells needs no edges and may be larger.
NODES, EDGES, BOARD = 1000, 5000, 40_000
#: Graphs that are drawn.
GRAPHS = 35
PARTS = ("train", "val", "test")


@dataclass(frozen=True)
class Drawing:
    """Nodes in a picture.

    Attributes:
        place: ``[n, 2]``, in [0, 1] of its width and height.
        edges: ``[2, E]``, those that are drawn, by the number of a node in the picture.
        unit: ``[n]``, the unit that each node belongs to.
        ids: ``[U]``, the number of each unit in the data.
        size: ``[U]``, neighbours of a node, or nodes of a graph.
        aspect: width / height.
        caption: what is drawn.
        side: of a board, of which only the cells are drawn; else ``None``.
    """

    place: Floats
    edges: Ints
    unit: Ints
    ids: Ints
    size: Ints
    aspect: float
    caption: str
    side: int | None = None


def explorer(model: GraphModel, batches: Batches) -> dict[str, Any]:
    """Draw a graph of a run and follow its units through the layers, as the page reads it."""
    problem, batch = batches.problem, batches.whole()
    if batch is not None:
        drawing = draw_nodes(batch.adj.cpu(), int(problem.test[0]))
        index = torch.from_numpy(drawing.ids)
        unit, part = "cell" if drawing.side else "node", _parts(problem)[drawing.ids]
    else:
        chosen = _choose_graphs(model, batches)
        batch = batches.load(torch.tensor(chosen))
        drawing = draw_graphs(batch.adj.cpu(), np.array(chosen), problem.level == "graph")
        index = torch.arange(drawing.ids.size)
        unit, part = problem.level, np.full(drawing.ids.size, PARTS.index("test"))
    return {
        "unit": unit,
        "part": pack(part, "u2"),
        **_picture(drawing),
        **_units(model, batch, problem, index),
    }


def draw_nodes(adj: Adjacency, start: int) -> Drawing:
    """Draw a single graph: a board as such, a small graph whole, of a large one a sample that holds
    the node ``start``.
    """
    n, degree = adj.num_nodes, adj.degree.numpy()
    side = board_side(adj) if n <= BOARD else None
    if side is not None:
        ids = np.arange(n)
        place = np.stack([ids % side + 0.5, ids // side + 0.5], axis=1) / side
        caption = f"The whole board, {side} × {side} cells."
        no_edges = np.zeros((2, 0), dtype=np.int64)
        return Drawing(place, no_edges, ids, ids, degree, 1.0, caption, side)
    ids = np.arange(n) if n <= NODES else sample_nodes(adj, start, NODES)
    kept = np.zeros(n, dtype=bool)
    kept[ids] = True
    edges = _edges_once(select_nodes(adj, torch.from_numpy(kept)))
    drawn = _limit_edges(edges)
    caption = f"All {n:,} nodes" if ids.size == n else f"{ids.size:,} of {n:,} nodes, a sample"
    if drawn.shape[1] < edges.shape[1]:
        caption += f", with {drawn.shape[1]:,} of the {edges.shape[1]:,} edges between them"
    place = spring_layout(ids.size, drawn)
    return Drawing(place, drawn, np.arange(ids.size), ids, degree[ids], 1.0, caption + ".")


def draw_graphs(adj: Adjacency, ids: Ints, by_graph: bool) -> Drawing:
    """Draw the graphs of a batch, each in its own cell of a grid.

    ``ids`` are their numbers in the data. A unit is a graph, or a node.
    """
    count, nodes = ids.size, np.arange(adj.num_nodes)
    batch = np.zeros(nodes.size, np.int64) if adj.batch is None else adj.batch.numpy()
    columns, rows = grid_shape(count)
    place, edges = np.zeros((nodes.size, 2)), _edges_once(adj)
    for graph in range(count):
        own = np.flatnonzero(batch == graph)
        if own.size:
            own_edges = edges[:, batch[edges[0]] == graph] - own[0]
            inside = to_unit_square(spring_layout(own.size, own_edges))
            corner = np.array([graph % columns, graph // columns])
            place[own] = (corner + 0.12 + 0.76 * inside) / [columns, rows]
    drawn, aspect = _limit_edges(edges), columns / rows
    caption = "Graph of the test part" if count == 1 else f"{count} graphs of the test part"
    if by_graph:
        size = np.bincount(batch, minlength=count)
        return Drawing(place, drawn, batch, ids, size, aspect, f"{caption}, by exit layer.")
    degree = adj.degree.numpy()
    return Drawing(place, drawn, nodes, nodes, degree, aspect, f"{caption}.")


def _choose_graphs(model: GraphModel, batches: Batches) -> list[int]:
    """Test graphs that fit, spread evenly over the exit layers where graphs are units."""
    problem, test = batches.problem, batches.problem.test
    if problem.level == "graph":
        layers = [model.predict(b.x, b.adj, b.edge_attr)[1].layer for b in batches.part("test")]
        test = test[torch.cat(layers).cpu().argsort(stable=True)]
    room = 2 * NODES
    chosen: list[int] = []
    evenly = torch.linspace(0, test.numel() - 1, min(GRAPHS, test.numel())).round().long()
    for i in test[evenly].tolist():
        room -= int(problem.graphs[i].num_nodes or 0)
        if room >= 0 or not chosen:
            chosen.append(i)
    return chosen


def _picture(drawing: Drawing) -> dict[str, Any]:
    picture = {
        "side": drawing.side,
        "aspect": drawing.aspect,
        "caption": drawing.caption,
        "ids": pack(drawing.ids, "u4"),
        "size": pack(drawing.size, "u4"),
    }
    if drawing.side is None:
        picture["x"] = pack_share(drawing.place[:, 0])
        picture["y"] = pack_share(drawing.place[:, 1])
        picture["unitOf"] = pack(drawing.unit, "u4")
        picture["edges"] = pack(drawing.edges.T.ravel(), "u4")
    return picture


def _units(model: GraphModel, batch: MiniBatch, problem: Problem, index: Tensor) -> dict[str, Any]:
    """Return what the units of ``index`` did: a row for each layer, beginning with layer 1."""
    inputs = (batch.x, batch.adj, batch.edge_attr)
    exits = model.predict(*inputs)[1].cpu()
    outputs = outputs_by_layer(model, *inputs).cpu().select(index)
    out = outputs.out.clone()
    # With after_exit="freeze" the prediction of a unit at its exit differs from the one it has
    # where no unit leaves.
    out[outputs.own_layer - 1, torch.arange(outputs.num_units)] = outputs.own_out
    y = None if batch.y is None else batch.y.cpu()[index]
    found = {
        "units": outputs.num_units,
        "layer": pack(outputs.own_layer, "u2"),
        "time": pack(exits.time[index], "f4"),
        **ANSWERS[problem.task](out, y, problem.scale),
    }
    if outputs.log_stay is not None:
        to_the_end = model.predict(*inputs, exit_threshold=1.0)[1].cpu()
        found["stay"] = pack_share(outputs.log_stay.exp())
        found["tau"] = pack_share(to_the_end.tau[:, index])
    return found


def _classes(out: Tensor, y: Tensor | None, scale: float) -> dict[str, Any]:
    """Return the most likely class at each layer, and its probability."""
    confidence, label = out.softmax(dim=-1).max(dim=-1)
    found = {"answer": pack(label, "u2"), "sure": pack_share(confidence)}
    return found if y is None else {**found, "truth": pack(y, "u2")}


def _labels(out: Tensor, y: Tensor | None, scale: float) -> dict[str, Any]:
    """The number of labels predicted at each layer, and the share of all labels that is right."""
    predicted = out > 0
    found = {"count": pack(predicted.sum(dim=-1), "u2")}
    if y is None:
        return found
    return {**found, "right": pack_share((predicted == (y > 0)).double().mean(dim=-1))}


def _values(out: Tensor, y: Tensor | None, scale: float) -> dict[str, Any]:
    """Return the first value at each layer."""
    found = {"value": pack(out[..., 0] * scale, "f4")}
    return found if y is None else {**found, "target": pack(y[:, 0] * scale, "f4")}


ANSWERS: dict[str, Callable[[Tensor, Tensor | None, float], dict[str, Any]]] = {
    "classification": _classes,
    "multilabel": _labels,
    "regression": _values,
}


def _parts(problem: Problem) -> Ints:
    """Return the part of each node: 0, 1, 2, or 3 for none."""
    part = np.full(int(problem.graphs[0].num_nodes or 0), len(PARTS))
    for number, name in enumerate(PARTS):
        part[getattr(problem, name).numpy()] = number
    return part


def _edges_once(adj: Adjacency) -> Ints:
    edges: Ints = adj.edge_index.numpy()
    return edges[:, edges[0] < edges[1]]


def _limit_edges(edges: Ints) -> Ints:
    """At most ``EDGES`` of them, and at least one of each node."""
    count = edges.shape[1]
    if count <= EDGES:
        return edges
    first = np.unique(edges[0], return_index=True)[1]
    others, second = np.unique(edges[1], return_index=True)
    needed = np.union1d(first, second[~np.isin(others, edges[:, first])])
    rest = np.setdiff1d(np.arange(count), needed)
    more = np.random.default_rng(0).permutation(rest)[: EDGES - needed.size]
    return edges[:, np.union1d(needed, more)]
