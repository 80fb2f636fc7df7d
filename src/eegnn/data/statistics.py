"""What a data set looks like in numbers, and whether that is what was published."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch_geometric.utils import homophily

from eegnn.data.problem import Problem
from eegnn.data.registry import find


@dataclass(frozen=True)
class Statistics:
    """Counts over all graphs.

    Attributes:
        graphs: how many.
        nodes: in all.
        edges: in all, both directions of each and a self-loop once, as in ``edge_index``.
        undirected_edges: in all, each once.
        features: of a node.
        classes: or labels, or targets.
        homophily: share of edges between nodes of one class; a single graph with node classes.
        adjusted_homophily: see :func:`adjusted_homophily`.
    """

    graphs: int
    nodes: int
    edges: int
    undirected_edges: int
    features: int
    classes: int
    homophily: float | None = None
    adjusted_homophily: float | None = None

    @property
    def figures(self) -> dict[str, float]:
        """All that is known, by name; of several graphs also means."""
        known = {name: value for name, value in asdict(self).items() if value is not None}
        if self.graphs == 1:
            del known["graphs"]
            return known
        for name in ("nodes", "edges", "undirected_edges"):
            known[f"mean_{name}"] = known[name] / self.graphs
        return known


class Difference(NamedTuple):
    """A figure that is not what was published.

    Attributes:
        figure: its name.
        published: in the paper.
        found: in the files; ``None`` if it could not be counted.
        known: whether the registry records it as an error of the publication, with what was found.
    """

    figure: str
    published: float
    found: float | None
    known: bool


def statistics(problem: Problem) -> Statistics:
    """Count nodes, edges and classes, and measure homophily where nodes have classes."""
    graphs = problem.graphs
    edges = torch.cat([data.edge_index for data in graphs], dim=1)
    loops = int((edges[0] == edges[1]).sum())
    y = torch.cat([data.y for data in graphs])
    classes = int(y.max()) + 1 if problem.task == "classification" else int(y.size(1))
    labelled = not problem.inductive and problem.task == "classification"
    return Statistics(
        graphs=len(graphs),
        nodes=sum(int(data.num_nodes or 0) for data in graphs),
        edges=edges.size(1),
        undirected_edges=(edges.size(1) + loops) // 2,
        features=problem.graphs[0].num_node_features,
        classes=classes,
        homophily=homophily(edges, y, method="edge") if labelled else None,
        adjusted_homophily=adjusted_homophily(edges, y) if labelled else None,
    )


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


def differences(name: str, measured: Statistics) -> list[Difference]:
    """Return the published figures that the measured ones, equally rounded, do not equal."""
    entry, found = find(name), measured.figures
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
