"""Masks of edges, which ``torch_geometric.explain`` puts on the layers of a model.

An explainer looks for modules that are PyG's ``MessagePassing``: it puts its mask on each of them,
in the order of ``edge_index``, counts them to know how many hops a node sees, and reads embeddings
from their outputs. Here a graph is propagated with as a sparse matrix, whose entries have an order
of their own. So a :class:`Hop` takes the mask, and at the door it becomes one of the graph.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch_geometric.nn import MessagePassing

from eegnn.graph import Adjacency


class Hop(MessagePassing):
    """Stands for one hop of message passing, and returns the states that it is given."""

    def __init__(self) -> None:
        super().__init__(aggr=None)

    def forward(self, h: Tensor) -> Tensor:
        """Return the states ``h`` as they are: hooks see them, and nothing is computed."""
        return h


def convolutions(module: nn.Module) -> list[MessagePassing]:
    """Return the modules of PyG within a module that pass messages."""
    return [part for part in module.modules() if isinstance(part, MessagePassing)]


def with_mask_of(module: nn.Module, adj: Adjacency) -> Adjacency:
    """Return the graph with the mask that an explainer has put on a module, if there is one."""
    if adj.mask is not None:  # that of a module around this one
        return adj
    hop = next((part for part in module.modules() if isinstance(part, Hop)), None)
    if hop is None or hop._edge_mask is None:
        return adj
    return adj.masked(hop._edge_mask.sigmoid() if hop._apply_sigmoid else hop._edge_mask)


@contextmanager
def messages_masked(conv: nn.Module, adj: Adjacency) -> Iterator[None]:
    """Let the convolutions of PyG within a module multiply messages by the mask of a graph.

    They are called with ``adj.edge_index``, so the mask is in its order.
    """
    parts = [] if adj.mask is None else convolutions(conv)
    for part in parts:
        part.explain, part._edge_mask, part._apply_sigmoid = True, adj.edge_mask, False
        part._loop_mask = torch.ones_like(part._edge_mask, dtype=torch.bool)  # there are no loops
    try:
        yield
    finally:
        for part in parts:
            part.explain, part._edge_mask, part._loop_mask = False, None, None
