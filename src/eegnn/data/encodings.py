"""Positional encodings, appended to the node features: random walks, and Laplacian eigenvectors."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.transforms import AddLaplacianEigenvectorPE, AddRandomWalkPE
from torch_geometric.utils import remove_self_loops, to_undirected

from eegnn import _check
from eegnn.data.arrays import Arrays, cached, digest
from eegnn.data.problem import Problem

Encoding = Literal["rwse", "lappe"]

VERSION = 1  # to be raised when the same graph gets other encodings


def encode(problem: Problem, kind: Encoding, k: int, root: Path | None = None) -> Problem:
    """Append ``k`` columns to the features of every node; the problem that is given stays as it is.

    Categories stay the first columns, as whole floating-point numbers. ``"rwse"`` are the
    probabilities that a random walk is back after 1 … k steps; ``"lappe"`` the eigenvectors of the
    normalised Laplacian that belong to the smallest eigenvalues but the first, with zeros where a
    graph has fewer. Their signs mean nothing; here the entry of largest size is positive, and
    :func:`flip_signs` is for training. Encodings are kept below ``root``, if it is given, and found
    again by the content of the graphs.
    """
    _check.choice("kind", kind, get_args(Encoding))
    _check.integer("k", k, at_least=1)
    for index, graph in enumerate(problem.graphs):
        if graph.x is None or not (graph.x.is_floating_point() or problem.node_categories):
            raise TypeError(f"{problem.name}: graph {index} needs floating-point features x")
    simple = [_simple_graph(graph) for graph in problem.graphs]
    parameters = {"kind": kind, "k": k, "graphs": _digest(simple), "version": VERSION}
    columns = cached(root, "encodings", parameters, lambda: _columns(simple, kind, k))["columns"]
    parts = torch.from_numpy(columns).split([graph.num_nodes for graph in simple])
    graphs = [_append(graph, part) for graph, part in zip(problem.graphs, parts, strict=True)]
    first = problem.in_channels
    note = f"columns {first} … {first + k - 1}"
    return replace(problem, graphs=graphs, notes={**problem.notes, kind: note})


def flip_signs(x: Tensor, columns: slice, generator: torch.Generator) -> Tensor:
    """Multiply each of these columns of ``x [N, F]`` by +1 or −1, at random; ``x`` is not changed.

    The sign of an eigenvector is arbitrary; a model trained on both signs does not rely on either.
    """
    width = x[:, columns].size(1)
    signs = 2 * torch.randint(0, 2, (width,), generator=generator) - 1
    flipped = x.clone()
    flipped[:, columns] *= signs.to(x)
    return flipped


def _simple_graph(graph: Data) -> Data:
    """The graph as models see it: every edge in both directions, once, without self-loops."""
    edge_index, _ = remove_self_loops(graph.edge_index)
    n = int(graph.num_nodes or 0)
    return Data(edge_index=to_undirected(edge_index, num_nodes=n), num_nodes=n)


def _digest(graphs: list[Data]) -> str:
    nodes = np.array([graph.num_nodes for graph in graphs])
    edges = np.array([graph.num_edges for graph in graphs])
    edge_index = torch.cat([graph.edge_index for graph in graphs], dim=1).numpy()
    return digest({"nodes": nodes, "edges": edges, "edge_index": edge_index})


def _columns(graphs: list[Data], kind: Encoding, k: int) -> Arrays:
    if kind == "rwse":
        transform = AddRandomWalkPE(walk_length=k, attr_name="pe")
        encoded = [transform(graph.clone()).pe for graph in graphs]
    else:
        encoded = [_eigenvectors(graph, k) for graph in graphs]
    return {"columns": torch.cat(encoded).numpy()}


def _eigenvectors(graph: Data, k: int) -> Tensor:
    n = int(graph.num_nodes or 0)
    sparse = n >= AddLaplacianEigenvectorPE.SPARSE_THRESHOLD
    found = min(k, n - 2 if sparse else n - 1)  # ARPACK cannot find all of them
    columns = torch.zeros(n, k)
    if found > 0:
        # ARPACK starts from a random vector and PyG draws random signs: both are made repeatable.
        start = {"v0": np.random.default_rng(0).standard_normal(n)} if sparse else {}
        transform = AddLaplacianEigenvectorPE(found, attr_name="pe", is_undirected=True, **start)
        with torch.random.fork_rng(devices=[]):
            pe = transform(graph.clone()).pe.float()
        largest = pe.gather(0, pe.abs().argmax(dim=0, keepdim=True))
        columns[:, :found] = pe * torch.where(largest < 0, -1.0, 1.0)
    return columns


def _append(graph: Data, columns: Tensor) -> Data:
    encoded = copy(graph)  # shallow: labels and edges are shared
    x = graph.x if graph.x.is_floating_point() else graph.x.to(columns)
    encoded.x = torch.cat([x, columns.to(x)], dim=1)
    return encoded
