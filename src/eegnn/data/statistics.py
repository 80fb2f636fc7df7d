"""What a data set looks like in numbers, and whether that is what was published."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch
from scipy.sparse import csr_array  # type: ignore[import-untyped]
from scipy.sparse.csgraph import shortest_path  # type: ignore[import-untyped]
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import homophily

from eegnn.data.problem import Problem
from eegnn.data.registry import find


class Difference(NamedTuple):
    """A figure that is not what was published."""

    figure: str
    published: float
    found: float | None  #: in the files; ``None`` if it could not be counted
    known: bool  #: whether the registry records it as an error of the publication


def statistics(problem: Problem) -> dict[str, float]:
    """Count over all graphs.

    Returns:
        What :func:`size_statistics` does; ``classes``, labels or targets; and of a single graph
        whose nodes have classes ``homophily``, the share of edges within a class, and
        :func:`adjusted_homophily`.
    """
    y = torch.cat([data.y for data in problem.graphs])
    # Of links each part has a copy of the graph, and testing knows the most of it.
    found = size_statistics(problem.graphs[-1:] if problem.predicts_links else problem.graphs)
    found["classes"] = int(y.max()) + 1 if problem.task == "classification" else y.size(1)
    if not problem.inductive and problem.task == "classification":
        edge_index = problem.graphs[0].edge_index
        found["homophily"] = homophily(edge_index, y, method="edge")
        found["adjusted_homophily"] = adjusted_homophily(edge_index, y)
    return found


def size_statistics(graphs: Sequence[Data]) -> dict[str, float]:
    """Count nodes and edges.

    Returns:
        ``nodes``; ``edges``, with both directions of each and a self-loop once, as in
        ``edge_index``; ``undirected_edges``, with each once; ``mean_degree``; ``features`` of a
        node. Of several graphs also their number, ``graphs``, and the means ``mean_nodes``,
        ``mean_edges`` and ``mean_undirected_edges``.
    """
    edge_index = torch.cat([data.edge_index for data in graphs], dim=1)
    loops = int((edge_index[0] == edge_index[1]).sum())
    sizes: dict[str, float] = {
        "nodes": sum(int(data.num_nodes or 0) for data in graphs),
        "edges": edge_index.size(1),
        "undirected_edges": (edge_index.size(1) + loops) // 2,
    }
    found = {
        **sizes,
        "mean_degree": sizes["edges"] / sizes["nodes"],
        "features": graphs[0].num_node_features,
    }
    if len(graphs) > 1:
        found["graphs"] = len(graphs)
        found.update({f"mean_{name}": size / len(graphs) for name, size in sizes.items()})
    return found


def distance_statistics(graphs: Sequence[Data]) -> dict[str, float]:
    """Return ``mean_shortest_path`` and ``mean_diameter`` over the graphs that are connected.

    The first is the mean over graphs of the mean distance between two different nodes.
    """
    paths, diameters = [], []
    for data in graphs:
        n, edges = int(data.num_nodes or 0), data.edge_index.numpy()
        hops = shortest_path(csr_array((np.ones(edges.shape[1]), edges), (n, n)), unweighted=True)
        if n > 1 and np.isfinite(hops).all():
            paths.append(hops.sum() / (n * (n - 1)))
            diameters.append(hops.max())
    return {
        "mean_shortest_path": float(np.mean(paths)),
        "mean_diameter": float(np.mean(diameters)),
    }


def adjusted_homophily(edge_index: Tensor, y: Tensor) -> float:
    r"""Edge homophily, corrected for what chance would give with these degrees.

    .. math::
        h_{adj} = \frac{h_{edge} - \sum_k D_k^2 / (2|E|)^2}{1 - \sum_k D_k^2 / (2|E|)^2}

    with :math:`D_k` the sum of the degrees of class :math:`k` (Platonov et al., 2023, "A critical
    look at the evaluation of GNNs under heterophily"). It is ``nan`` where all edges lie within
    one class.

    Args:
        edge_index: ``[2, 2|E|]``, both directions of every edge.
        y: ``int64 [n]``, the classes.
    """
    share = torch.bincount(y[edge_index[0]]).double() / edge_index.size(1)
    chance = float(share.square().sum())
    edge = float((y[edge_index[0]] == y[edge_index[1]]).double().mean())
    return (edge - chance) / (1 - chance) if chance < 1 else float("nan")


def differences(name: str, found: Mapping[str, float]) -> list[Difference]:
    """Compare published figures with those found by :func:`statistics`, rounded as printed."""
    entry = find(name)
    return [
        Difference(
            figure,
            published,
            found.get(figure),
            known=_agree(entry.corrections.get(figure), found.get(figure)),
        )
        for figure, published in entry.figures.items()
        if not _agree(published, found.get(figure))
    ]


def _agree(published: float | None, found: float | None) -> bool:
    if published is None or found is None:
        return False
    if isinstance(published, int):
        return published == found
    return abs(found - published) <= 0.005 + 1e-9  # printed with two decimals
