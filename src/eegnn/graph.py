"""The door: an edge list is checked once and becomes one symmetric CSR structure.

Everything inside the library receives an :class:`Adjacency` and trusts it.
"""

from __future__ import annotations

import sys
import warnings
from typing import Literal, get_args

import torch
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary

from eegnn import _check
from eegnn._spmm import spmm

Norm = Literal["sym", "mean", "sum"]


class Adjacency:
    r"""An undirected graph without self-loops, ready to propagate features.

    Holds one symmetric CSR structure with ``int32`` indices and the degrees :math:`d`. All that
    is propagated with are matrices of this structure, so the backward pass reads it too: no
    transpose, no second copy, no scatter.

    Build it with :meth:`from_edge_index`; it never changes and may be used for any number of
    forward passes, by any number of models.

    Attributes:
        rowptr, col: the CSR structure, shapes ``[n + 1]`` and ``[num_edges]``.
        degree: ``int64 [n]``. Of the whole graph, also in a selection: see :mod:`eegnn.subgraph`.
        batch: ``int64 [n]``, the graph of each node, or ``None`` for a single graph.
        num_graphs: number of graphs.
        nodes: ``int64 [n]``, for a selection the indices of its nodes in the graph that
            :meth:`from_edge_index` saw; ``None`` if nothing was left out.
        num_targets: the first so many nodes have entries; all of them, but in a
            :func:`~eegnn.subgraph.neighborhood`.
    """

    def __init__(
        self,
        rowptr: Tensor,
        col: Tensor,
        degree: Tensor,
        batch: Tensor | None = None,
        num_graphs: int = 1,
        nodes: Tensor | None = None,
        source: Tensor | None = None,
    ) -> None:
        self.rowptr = rowptr
        self.col = col
        self.degree = degree
        self.batch = batch
        self.num_graphs = num_graphs
        self.nodes = nodes
        self.num_targets = rowptr.numel() - 1
        self._source = source
        self._values: dict[tuple[Norm, torch.dtype], tuple[Tensor, Tensor]] = {}
        self._row: Tensor | None = None
        self._edge_index: Tensor | None = None
        self._column_weight: Tensor | None = None
        self._ptr: Tensor | None = None

    @classmethod
    def from_edge_index(
        cls,
        edge_index: Tensor,
        num_nodes: int | None = None,
        batch: Tensor | None = None,
        num_graphs: int | None = None,
    ) -> Adjacency:
        """Check an edge list and build the structure.

        Self-loops are removed (Theorem 1 needs it), duplicates are merged, and a directed edge
        list is made undirected with a warning.

        Args:
            edge_index: integer tensor ``[2, E]``, as in PyG.
            num_nodes: number of nodes; by default the length of ``batch``, else the largest index
                plus one.
            batch: ``[num_nodes]``, the graph of each node, ascending, as PyG's loaders make it.
            num_graphs: number of graphs, where the last ones may have no nodes; by default the
                last entry of ``batch`` plus one.

        Raises:
            TypeError: an argument has the wrong type or dtype.
            ValueError: an argument has the wrong shape, an index is out of range, or an edge
                joins two graphs.
        """
        edge_index = _check_edge_index(edge_index)
        if num_nodes is None:
            num_nodes = _infer_num_nodes(edge_index, batch)
        n = _check.integer("num_nodes", num_nodes, at_least=0)
        _check_range(edge_index, n)
        if batch is None:
            num_graphs = 1
        else:
            batch = _check_batch(batch, n, edge_index)
            fewest = int(batch[-1]) + 1 if n else 0
            num_graphs = fewest if num_graphs is None else num_graphs
            _check.integer("num_graphs", num_graphs, at_least=fewest)

        row, col = edge_index.long()
        keep = row != col
        key = torch.unique(row[keep] * n + col[keep])
        transposed = torch.sort((key % max(n, 1)) * n + key // max(n, 1)).values
        if not torch.equal(key, transposed):
            warnings.warn(
                "edge_index is directed; each edge is used in both directions "
                "(pass it through torch_geometric.utils.to_undirected to say so yourself)",
                stacklevel=_caller_level(),
            )
            key = torch.unique(torch.cat([key, transposed]))
        row, col = key // max(n, 1), key % max(n, 1)
        degree = torch.bincount(row, minlength=n)
        dtype = torch.int32 if max(key.numel(), n) < 2**31 else torch.int64
        return cls(
            rowptr=row_pointer(degree, dtype),
            col=col.to(dtype),
            degree=degree,
            batch=batch,
            num_graphs=num_graphs,
            source=edge_index.to(dtype, copy=True),
        )

    @property
    def num_nodes(self) -> int:
        """Number of nodes :math:`n`."""
        return self.rowptr.numel() - 1

    @property
    def num_edges(self) -> int:
        """Number of directed edges, twice the number of undirected ones."""
        return self.col.numel()

    @property
    def row(self) -> Tensor:
        """``int64 [num_edges]``: the row of each CSR entry."""
        if self._row is None:
            self._row = torch.repeat_interleave(
                torch.arange(self.num_nodes, device=self.col.device), self.rowptr.diff().long()
            )
        return self._row

    @property
    def edge_index(self) -> Tensor:
        """``int64 [2, num_edges]``, for layers that take PyG's format."""
        if self._edge_index is None:
            self._edge_index = torch.stack([self.col.long(), self.row])
        return self._edge_index

    @property
    def ptr(self) -> Tensor:
        """``int32 [num_graphs + 1]``, or ``int64``: where the nodes of each graph begin."""
        if self._ptr is None:
            sizes = torch.tensor([self.num_nodes], device=self.col.device)
            if self.batch is not None:
                sizes = torch.bincount(self.batch, minlength=self.num_graphs)
            self._ptr = row_pointer(sizes, self.rowptr.dtype)
        return self._ptr

    def propagate(self, x: Tensor, norm: Norm = "sym") -> Tensor:
        r"""Return :math:`\mathbf{\bar A}\mathbf{X}`.

        Args:
            x: ``[n, d]``, ``[n]``, or ``[s, n, d]`` for several at once.
            norm: ``"sym"`` for :math:`\mathbf{D}^{-1/2}\mathbf{A}\mathbf{D}^{-1/2}`, ``"mean"``
                for :math:`\mathbf{D}^{-1}\mathbf{A}`, ``"sum"`` for :math:`\mathbf{A}`.
        """
        if x.dtype in (torch.float16, torch.bfloat16):  # the CPU kernels need float32
            return self.propagate(x.float(), norm).to(x.dtype)
        if x.dim() == 3:  # side by side: one product
            side = self.propagate(x.transpose(0, 1).flatten(1), norm)
            return side.unflatten(1, (x.size(0), x.size(2))).transpose(0, 1)
        return spmm(self.rowptr, self.col, *self._norm_values(norm, x.dtype), x)

    def incidence_sum(self, edge_attr: Tensor) -> Tensor:
        r"""Return :math:`\mathbf{B}\mathbf{E}`, the sum of edge features over incident edges.

        An undirected edge counts once, whether ``edge_index`` lists it in one direction or in
        both; if it is listed several times, its feature is the mean of those columns. Self-loops
        count for nothing.

        Args:
            edge_attr: ``[E, d]``, a row for each column of the ``edge_index`` given to
                :meth:`from_edge_index`.

        Returns:
            ``[n, d]``.
        """
        if self._source is None:
            raise ValueError("edge features belong to the whole graph, not to a selection of it")
        row, col = self._source.long()
        weighted = edge_attr * self._edge_column_weight().to(edge_attr.dtype).unsqueeze(-1)
        out = edge_attr.new_zeros(self.num_nodes, edge_attr.size(-1))
        return out.index_add(0, row, weighted).index_add(0, col, weighted)

    def to(self, device: torch.device | str) -> Adjacency:
        """Return a copy on another device."""

        def move(tensor: Tensor | None) -> Tensor | None:
            return None if tensor is None else tensor.to(device)

        return Adjacency(
            self.rowptr.to(device),
            self.col.to(device),
            self.degree.to(device),
            move(self.batch),
            self.num_graphs,
            move(self.nodes),
            move(self._source),
        )

    @property
    def num_edge_columns(self) -> int | None:
        """Columns of the original ``edge_index``; ``edge_attr`` has a row for each."""
        return None if self._source is None else self._source.size(1)

    def _norm_values(self, norm: Norm, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """Values of the CSR entries, ``[num_edges]``, and those of the transposed matrix."""
        if (norm, dtype) not in self._values:
            _check.choice("norm", norm, get_args(Norm))
            if norm == "sum":
                value = transposed = torch.ones(self.num_edges, dtype=dtype, device=self.col.device)
            else:
                # A node with an entry has degree ≥ 1: no division by zero.
                degree = self.degree.to(torch.float64).clamp(min=1)
                target = torch.repeat_interleave(degree, self.rowptr.diff())
                source = degree.index_select(0, self.col)
                if norm == "sym":
                    value = transposed = (target * source).rsqrt().to(dtype)
                else:
                    value, transposed = target.reciprocal().to(dtype), source.reciprocal().to(dtype)
            self._values[norm, dtype] = value, transposed
        return self._values[norm, dtype]

    def _edge_column_weight(self) -> Tensor:
        """1 / (columns that name the same undirected edge), 0 for self-loops."""
        if self._column_weight is None:
            assert self._source is not None
            row, col = self._source.long()
            pair = torch.minimum(row, col) * self.num_nodes + torch.maximum(row, col)
            _, edge, count = torch.unique(pair, return_inverse=True, return_counts=True)
            weight = count[edge].to(torch.float64).reciprocal()
            self._column_weight = weight.masked_fill(row == col, 0.0)
        return self._column_weight

    def __repr__(self) -> str:
        graphs = f", num_graphs={self.num_graphs}" if self.batch is not None else ""
        return f"Adjacency(num_nodes={self.num_nodes}, num_edges={self.num_edges}{graphs})"


def row_pointer(count: Tensor, dtype: torch.dtype) -> Tensor:
    """Return where each of these many entries a row begin, ``[n + 1]``."""
    return torch.nn.functional.pad(count.cumsum(0), (1, 0)).to(dtype)


def _check_edge_index(edge_index: Tensor) -> Tensor:
    _check.tensor("edge_index", edge_index)
    if edge_index.is_sparse or edge_index.layout != torch.strided:
        raise TypeError("edge_index must be a dense [2, E] tensor, got a sparse matrix")
    if edge_index.dim() != 2 or edge_index.size(0) != 2:
        raise ValueError(f"edge_index must have shape [2, E], got {list(edge_index.shape)}")
    if edge_index.dtype not in (torch.int64, torch.int32):
        raise TypeError(f"edge_index must have dtype int64 or int32, got {edge_index.dtype}")
    return edge_index.as_subclass(Tensor)


def _infer_num_nodes(edge_index: Tensor, batch: Tensor | None) -> int:
    if isinstance(batch, Tensor) and batch.dim() == 1:
        return batch.numel()
    return max(int(edge_index.max()) + 1, 0) if edge_index.numel() else 0


def _check_range(edge_index: Tensor, num_nodes: int) -> None:
    if edge_index.numel() == 0:
        return
    low, high = (int(v) for v in torch.aminmax(edge_index))
    if low < 0:
        raise ValueError(f"edge_index holds {low}; indices of nodes start at 0")
    if high >= num_nodes:
        raise ValueError(
            f"edge_index holds the node {high}, but with num_nodes={num_nodes} "
            f"indices must be below {num_nodes}"
        )


def _check_batch(batch: Tensor, num_nodes: int, edge_index: Tensor) -> Tensor:
    _check.tensor("batch", batch)
    if batch.dtype not in (torch.int64, torch.int32):
        raise TypeError(f"batch must have dtype int64, got {batch.dtype}")
    if batch.shape != (num_nodes,):
        raise ValueError(f"batch must have shape [{num_nodes}], got {list(batch.shape)}")
    batch = batch.to(torch.int64, copy=True)  # later changes to the caller's tensor stay outside
    if num_nodes and (int(batch[0]) < 0 or bool((batch.diff() < 0).any())):
        raise ValueError("batch must be non-negative and ascending, one graph after the other")
    crossing = batch[edge_index[0]] != batch[edge_index[1]]
    if bool(crossing.any()):
        u, v = edge_index[:, int(crossing.nonzero()[0])].tolist()
        raise ValueError(
            f"edge_index joins node {u} of graph {int(batch[u])} with node {v} of graph "
            f"{int(batch[v])}; an edge must stay within a graph of the batch"
        )
    return batch


def _caller_level() -> int:
    """Stack level of the first caller outside the library, so that warnings point there."""
    level, frame = 2, sys._getframe(2)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] in (
        "eegnn",
        "torch",
    ):
        level, frame = level + 1, frame.f_back
    return level


_SEEN: WeakIdKeyDictionary = WeakIdKeyDictionary()


def adjacency_of(edge_index: Tensor, num_nodes: int | None, batch: Tensor | None) -> Adjacency:
    """:meth:`Adjacency.from_edge_index`, remembering the edge lists it has seen.

    A training loop calls ``model(x, edge_index)`` thousands of times with one tensor; sorting its
    edges each time would cost as much as the model. The memory is weak (an entry goes when its
    tensor goes), and the tensor's version counter tells of changes made in place.
    """
    if not isinstance(edge_index, Tensor) or edge_index.is_inference():  # no version counter
        return Adjacency.from_edge_index(edge_index, num_nodes, batch)
    seen: tuple[int, int | None, Adjacency] | None = _SEEN.get(edge_index)
    if seen is not None and seen[:2] == (edge_index._version, num_nodes):
        adj = seen[2]
        if _same_batch(adj.batch, batch):
            return adj
    adj = Adjacency.from_edge_index(edge_index, num_nodes, batch)
    _SEEN[edge_index] = (edge_index._version, num_nodes, adj)
    return adj


def _same_batch(known: Tensor | None, given: Tensor | None) -> bool:
    if known is None or not isinstance(given, Tensor):
        return known is given
    return given.dtype in (torch.int64, torch.int32) and torch.equal(known, given.long())
