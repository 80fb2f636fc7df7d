"""Parts of a graph: some nodes, the neighbourhood of some nodes, or some graphs of a batch.

The degrees of a part stay those of the whole graph, so what remains is a block of the normalised
matrix and not the normalised matrix of a block: states of the nodes that are kept evolve as before,
as long as no neighbour that matters was left out.
"""

from __future__ import annotations

import copy

import torch
from torch import Tensor
from torch.nn.functional import pad

from eegnn.graph import Adjacency, row_pointer


def select_nodes(adj: Adjacency, nodes: Tensor) -> Adjacency:
    """Keep some nodes and the edges between them.

    Args:
        adj: the graph.
        nodes: ``bool [n]``.
    """
    # Only the entries of these rows are read: a small part of a large graph costs little.
    index = nodes.nonzero().view(-1)
    pointer, position = _select_rows(adj.rowptr, index)
    col = adj.col.index_select(0, position)
    inside = nodes.index_select(0, col)
    before = pad(inside.cumsum(0), (1, 0))  # entries kept, up to here
    number = torch.empty(adj.num_nodes, dtype=col.dtype, device=col.device)
    number[index] = torch.arange(index.numel(), dtype=col.dtype, device=col.device)
    part = Adjacency(
        rowptr=before.index_select(0, pointer).to(adj.rowptr.dtype),
        col=number.index_select(0, col[inside]),
        degree=adj.degree[index],
        batch=None if adj.batch is None else adj.batch[index],
        num_graphs=adj.num_graphs,
        nodes=index if adj.nodes is None else adj.nodes[index],
    )
    if adj.has_own_values:
        _copy_values(adj, part, index, position[inside])
    return part


def neighborhood(
    adj: Adjacency, targets: Tensor, scratch: Tensor | None = None
) -> tuple[Adjacency, Tensor]:
    """Return some nodes with all their neighbours, for computing at the former alone.

    The targets come first and have their entries; their neighbours follow, to be read, and have
    none: what is propagated is right at the first ``num_targets`` nodes and 0 at the others. The
    structure is not symmetric any more, so this is for evaluation only.

    Args:
        adj: the graph.
        targets: ``int64 [r]``, different nodes that have their entries.
        scratch: ``[n]`` of the dtype of ``adj.col``, which is overwritten, for many small parts of
            one graph: new memory takes time at its first use (13 of 17 ms for blocks of 10,000 of
            10⁷ nodes).

    Returns:
        The part, and its nodes as indices of ``adj``.
    """
    # index_select and 32-bit indices throughout: a third of the time of x[index] with 64.
    rowptr, position = _select_rows(adj.rowptr, targets)
    col = adj.col.index_select(0, position)
    number = adj.col.new_empty(adj.num_nodes) if scratch is None else scratch
    if 8 * col.numel() < adj.num_nodes:  # a small part: nothing as long as the graph is read
        near = torch.unique(col).long()
        number[near] = 1
        number[targets] = 0
        near = near[number[near] > 0]
    else:
        outside = torch.bincount(col, minlength=adj.num_nodes) > 0
        outside[targets] = False
        near = outside.nonzero().view(-1)
    order = torch.cat([targets, near])
    number[order] = torch.arange(order.numel(), dtype=number.dtype, device=col.device)
    ends = rowptr[-1:].expand(near.numel())
    part = Adjacency(
        rowptr=torch.cat([rowptr, ends]),
        col=number.index_select(0, col),
        degree=adj.degree.index_select(0, order),
        batch=None if adj.batch is None else adj.batch.index_select(0, order),
        num_graphs=adj.num_graphs,
        nodes=order if adj.nodes is None else adj.nodes.index_select(0, order),
    )
    part.num_targets = targets.numel()
    _copy_values(adj, part, order, position, symmetric=False)
    return part, order


def first_targets(adj: Adjacency, count: int) -> Adjacency:
    """Return the same graph, where results are wanted at its first ``count`` nodes alone."""
    part = copy.copy(adj)
    part.num_targets = count
    return part


def select_graphs(adj: Adjacency, graphs: Tensor) -> tuple[Adjacency, Tensor]:
    """Keep some graphs of a batch and number them anew.

    Args:
        adj: the batch.
        graphs: ``bool [num_graphs]``.

    Returns:
        The part, and its nodes as indices of ``adj``.
    """
    if adj.batch is None:
        raise ValueError("select_graphs needs an Adjacency with a batch")
    # The nodes of a graph follow each other, and so do their entries: ranges of both are
    # copied, and within a graph all numbers fall by the same amount.
    kept = graphs.nonzero().view(-1)
    ptr, rows = _select_rows(adj.ptr, kept)
    begin = adj.rowptr.index_select(0, adj.ptr)
    entry, position = _select_rows(begin, kept)
    node_shift = adj.ptr.index_select(0, kept) - ptr[:-1]
    entry_shift = begin.index_select(0, kept) - entry[:-1]
    start = adj.rowptr.index_select(0, rows)
    part = Adjacency(
        rowptr=torch.cat([start - _repeat(entry_shift, ptr), entry[-1:]]),
        col=adj.col.index_select(0, position) - _repeat(node_shift, entry),
        degree=adj.degree.index_select(0, rows),
        batch=_repeat(torch.arange(kept.numel(), device=kept.device), ptr),
        num_graphs=kept.numel(),
        nodes=rows.long() if adj.nodes is None else adj.nodes.index_select(0, rows),
    )
    part._ptr = ptr
    part.entries = position if adj.entries is None else adj.entries.index_select(0, position)
    _copy_values(adj, part, rows, position)
    return part, rows


def _copy_values(
    adj: Adjacency, part: Adjacency, nodes: Tensor, position: Tensor, symmetric: bool = True
) -> None:
    """Give a part with these nodes and CSR entries the values that are known of them.

    Where its structure is not symmetric, those of the transposed matrix are of no use.
    """
    for key, (value, transposed) in adj._values.items():
        own = value.index_select(0, position)
        same = transposed is value or not symmetric
        part._values[key] = own, own if same else transposed.index_select(0, position)
    if adj.has_own_values:
        part.weighted_degree = adj.weighted_degree.index_select(0, nodes)
        part.weight = None if adj.weight is None else adj.weight.index_select(0, position)
        part.mask = None if adj.mask is None else adj.mask.index_select(0, position)
        part.listed = None if adj.listed is None else adj.listed.index_select(0, position)


def _select_rows(rowptr: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
    """CSR pointer of a few rows, and the positions of their entries."""
    start = rowptr.index_select(0, rows)
    count = rowptr.index_select(0, rows + 1) - start
    pointer = row_pointer(count, rowptr.dtype)
    offset = _repeat(start - pointer[:-1], pointer)
    return pointer, torch.arange(offset.numel(), dtype=rowptr.dtype, device=rowptr.device) + offset


def _repeat(value: Tensor, pointer: Tensor) -> Tensor:
    """Return each value as often as its range is long."""
    return torch.repeat_interleave(value, pointer.diff())
