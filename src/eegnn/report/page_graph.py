"""The exit explorer's data: a graph to draw, and what each unit did at every layer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from eegnn.analysis.layers import LayerOutputs, has_exits, outputs_by_layer
from eegnn.data.problem import Problem
from eegnn.graph import Adjacency
from eegnn.nn.model import GraphModel
from eegnn.report.page_layout import (
    Floats,
    Ints,
    board_side,
    cells,
    into_unit_square,
    neighbourhood,
    spring_layout,
)
from eegnn.report.page_pack import pack, pack_share
from eegnn.train.batches import Batches, Units, gather

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
        caption: what is drawn, for people.
        side: of a board; then nothing is drawn but its cells.
    """

    place: Floats
    edges: Ints
    unit: Ints
    ids: Ints
    size: Ints
    aspect: float
    caption: str
    side: int | None = None


def explorer(model: GraphModel, batches: Batches, everyone: LayerOutputs | None) -> dict[str, Any]:
    """Draw a graph of a run and follow its units, as the page reads it.

    Args:
        model: of the run.
        batches: of the run.
        everyone: outputs of all nodes, where there is one graph.
    """
    problem, whole = batches.problem, batches.whole()
    if whole is not None:
        assert everyone is not None
        drawing = draw_nodes(whole.adj, int(problem.test[0]))
        index = torch.from_numpy(drawing.ids)
        return {
            **_picture(drawing, "cell" if drawing.side else "node"),
            **_units(model, whole, everyone, problem, index),
            "part": pack(_parts(problem)[drawing.ids], "u2"),
        }
    chosen = _choose_graphs(model, batches)
    units = gather(
        [problem.graphs[i] for i in chosen],
        batches.with_edges,
        problem.node_categories,
        problem.edge_categories,
    )
    drawing = draw_graphs(units.adj, np.array(chosen), problem.level == "graph")
    outputs = outputs_by_layer(model, units.x, units.adj, units.edge_attr)
    return {
        **_picture(drawing, "graph" if problem.level == "graph" else "node"),
        **_units(model, units, outputs, problem, None),
        "part": pack(np.full(drawing.ids.size, PARTS.index("test")), "u2"),
    }


def draw_nodes(adj: Adjacency, start: int) -> Drawing:
    """Draw a single graph: a board as such, a small graph whole, of a large one a sample.

    Args:
        adj: the graph.
        start: a node that a sample must hold.
    """
    n, degree = adj.num_nodes, adj.degree.cpu().numpy()
    side = board_side(adj) if n <= BOARD else None
    if side is not None:
        ids = np.arange(n)
        place = np.stack([ids % side + 0.5, ids // side + 0.5], axis=1) / side
        caption = f"The whole board, {side} × {side} cells."
        none = np.zeros((2, 0), dtype=np.int64)
        return Drawing(place, none, ids, ids, degree, 1.0, caption, side)
    ids = np.arange(n) if n <= NODES else neighbourhood(adj, start, NODES)
    inner = np.zeros(n, dtype=bool)
    inner[ids] = True
    edges = _edges_once(adj.select(torch.from_numpy(inner)))
    drawn = _fewer(edges)
    caption = f"All {n:,} nodes" if ids.size == n else f"{ids.size:,} of {n:,} nodes, a sample"
    if drawn.shape[1] < edges.shape[1]:
        caption += f", with {drawn.shape[1]:,} of the {edges.shape[1]:,} edges between them"
    place = spring_layout(ids.size, drawn)
    return Drawing(place, drawn, np.arange(ids.size), ids, degree[ids], 1.0, caption + ".")


def draw_graphs(adj: Adjacency, numbers: Ints, by_graph: bool) -> Drawing:
    """Draw several graphs, each in its own cell.

    Args:
        adj: the graphs, as a batch.
        numbers: of the graphs in the data.
        by_graph: whether a unit is a graph, or a node.
    """
    count = numbers.size
    batch = np.zeros(adj.num_nodes, np.int64) if adj.batch is None else adj.batch.cpu().numpy()
    columns, rows = cells(count)
    place, edges = np.zeros((adj.num_nodes, 2)), _edges_once(adj)
    for graph in range(count):
        nodes = np.flatnonzero(batch == graph)
        if nodes.size:
            first = nodes[0]
            own = edges[:, batch[edges[0]] == graph] - first
            inside = into_unit_square(spring_layout(nodes.size, own))
            corner = np.array([graph % columns, graph // columns])
            place[nodes] = (corner + 0.12 + 0.76 * inside) / [columns, rows]
    what = "graph" if count == 1 else f"{count} graphs"
    caption = f"{what} of the test part".capitalize() + (", by exit layer." if by_graph else ".")
    nodes_of = np.bincount(batch, minlength=count)
    own_number = np.arange(adj.num_nodes)
    return Drawing(
        place,
        _fewer(edges),
        batch if by_graph else own_number,
        numbers if by_graph else own_number,
        nodes_of if by_graph else adj.degree.cpu().numpy(),
        columns / rows,
        caption,
    )


def _choose_graphs(model: GraphModel, batches: Batches) -> list[int]:
    """Test graphs that fit, spread evenly over the exit layers where graphs are units."""
    problem = batches.problem
    test = problem.test
    if problem.level == "graph":
        layers = [model.predict(u.x, u.adj, u.edge_attr)[1].layer for u in batches.part("test")]
        test = test[torch.cat(layers).cpu().argsort(stable=True)]
    room = 2 * NODES
    chosen: list[int] = []
    evenly = torch.linspace(0, test.numel() - 1, min(GRAPHS, test.numel())).round().long()
    for i in test[evenly].tolist():
        room -= int(problem.graphs[i].num_nodes or 0)
        if room >= 0 or not chosen:
            chosen.append(i)
    return chosen


def _picture(drawing: Drawing, unit: str) -> dict[str, Any]:
    place = (
        {}
        if drawing.side
        else {
            "x": pack_share(drawing.place[:, 0]),
            "y": pack_share(drawing.place[:, 1]),
            "unitOf": pack(drawing.unit, "u4"),
            "edges": pack(drawing.edges.T.ravel(), "u4"),
        }
    )
    return {
        **place,
        "unit": unit,
        "side": drawing.side,
        "aspect": drawing.aspect,
        "caption": drawing.caption,
        "ids": pack(drawing.ids, "u4"),
        "size": pack(drawing.size, "u4"),
    }


def _units(
    model: GraphModel,
    units: Units,
    outputs: LayerOutputs,
    problem: Problem,
    index: Tensor | None,
) -> dict[str, Any]:
    """What the units of ``index`` did: a row a layer, beginning with layer 1."""
    given = (units.x, units.adj, units.edge_attr)
    _, own = model.predict(*given)
    index = torch.arange(outputs.num_units) if index is None else index
    seen, y = outputs.of(index), None if units.y is None else units.y[index]
    answers = seen.out.clone()
    # Where leaving changes what others see, the answer that counts is not that of a unit that
    # stayed with all others.
    answers[seen.own_layer - 1, torch.arange(seen.num_units)] = seen.own_out
    found = {
        "units": seen.num_units,
        "layer": pack(seen.own_layer.cpu().numpy(), "u2"),
        "time": pack(own.time[index].cpu().numpy(), "f4"),
        **ANSWERS[problem.task](answers, y, problem.scale),
    }
    if seen.log_stay is not None and has_exits(model):
        _, on = model.predict(*given, exit_threshold=1.0)
        found["stay"] = pack_share(seen.log_stay.exp().cpu().numpy())
        found["tau"] = pack_share(on.tau[:, index].cpu().numpy())
    return found


def _classes(answers: Tensor, y: Tensor | None, scale: float) -> dict[str, Any]:
    """The class that is most likely at each layer, and how likely."""
    confidence, label = answers.softmax(dim=-1).max(dim=-1)
    found = {"answer": pack(label.cpu().numpy(), "u2"), "sure": pack_share(confidence.cpu())}
    return found if y is None else {**found, "truth": pack(y.cpu().numpy(), "u2")}


def _labels(answers: Tensor, y: Tensor | None, scale: float) -> dict[str, Any]:
    """How many labels are given at each layer, and the share of them all that is right."""
    given = answers > 0
    found = {"count": pack(given.sum(dim=-1).cpu().numpy(), "u2")}
    if y is None:
        return found
    return {**found, "right": pack_share((given == (y > 0)).double().mean(dim=-1).cpu())}


def _values(answers: Tensor, y: Tensor | None, scale: float) -> dict[str, Any]:
    """The first value at each layer."""
    found = {"value": pack((answers[..., 0] * scale).cpu().numpy(), "f4")}
    return found if y is None else {**found, "target": pack((y[:, 0] * scale).cpu(), "f4")}


ANSWERS: dict[str, Callable[[Tensor, Tensor | None, float], dict[str, Any]]] = {
    "classification": _classes,
    "multilabel": _labels,
    "regression": _values,
}


def _parts(problem: Problem) -> Ints:
    """The part of each node: 0, 1, 2, or 3 for none."""
    part = np.full(int(problem.graphs[0].num_nodes or 0), len(PARTS))
    for number, name in enumerate(PARTS):
        part[getattr(problem, name).numpy()] = number
    return part


def _edges_once(adj: Adjacency) -> Ints:
    edges: Ints = adj.edge_index.cpu().numpy()
    return edges[:, edges[0] < edges[1]]


def _fewer(edges: Ints) -> Ints:
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
