"""METIS cuts a graph into blocks of about the same size with few edges between them."""

from __future__ import annotations

import torch
from torch import Tensor

from eegnn import _check
from eegnn.engine.blocked.block import Blocks
from eegnn.graph import Adjacency


def partition(
    edge_index: Tensor | Adjacency, num_nodes: int | None = None, num_blocks: int = 8
) -> Blocks:
    """Cut a graph into blocks.

    The same graph gives the same blocks each time, in each process.

    Args:
        edge_index: ``[2, E]`` as in PyG, or an :class:`~eegnn.Adjacency`.
        num_nodes: as in :meth:`Adjacency.from_edge_index <eegnn.Adjacency.from_edge_index>`.
        num_blocks: how many blocks; METIS may leave some of them empty, and those are left out.

    Raises:
        ImportError: ``pymetis`` is not installed.
    """
    adj = edge_index
    if not isinstance(adj, Adjacency):
        adj = Adjacency.from_edge_index(adj, num_nodes)
    _check.integer("num_blocks", num_blocks, at_least=1)
    if num_blocks > max(adj.num_nodes, 1):
        raise ValueError(
            f"num_blocks must be at most the number of nodes, {adj.num_nodes}, got {num_blocks}"
        )
    assignment = _metis(adj, num_blocks)
    order = torch.sort(assignment, stable=True).indices
    sizes = torch.bincount(assignment, minlength=num_blocks).tolist()
    return Blocks(adj, [core for core in order.split(sizes) if core.numel()])


def cut_in_order(adj: Adjacency, nodes: int) -> Blocks:
    """Cut a graph into blocks of so many nodes with successive numbers.

    For graphs too large for METIS whose numbers say who is near whom, such as those of
    :func:`eegnn.data.powerlaw_files.write_powerlaw`.

    Args:
        adj: the graph, perhaps mapped: ``MappedGraph(folder).whole()``.
        nodes: nodes of a block.
    """
    _check.integer("nodes", nodes, at_least=1)
    return Blocks(adj, torch.arange(adj.num_nodes).split(nodes) if adj.num_nodes else [])


def _metis(adj: Adjacency, num_blocks: int) -> Tensor:
    if num_blocks == 1:
        return torch.zeros_like(adj.degree)
    try:
        import pymetis
    except ImportError as error:
        raise ImportError(
            "cutting a graph into blocks needs pymetis: pip install 'eegnn[blocks]'"
        ) from error
    graph = pymetis.CSRAdjacency(adj.rowptr.cpu().numpy(), adj.col.cpu().numpy())
    options = pymetis.Options(seed=0)
    _, part = pymetis.part_graph(num_blocks, graph, options=options)
    return torch.as_tensor(part, dtype=torch.int64, device=adj.device)
