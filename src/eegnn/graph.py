"""The door: an edge list is checked once and becomes one symmetric CSR structure.

Everything inside the library receives an :class:`Adjacency` and trusts it.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any, Literal, get_args

import torch
from torch import Tensor
from torch.utils._pytree import tree_map_only
from torch_geometric.utils import is_sparse

from eegnn import _check
from eegnn._edge_list import (
    check_edge_index,
    check_edge_weight,
    check_values,
    from_sparse,
    infer_num_nodes,
    matrix_entries,
    read,
)
from eegnn._edge_values import match_columns, share_of_edge, weighted_values, widest_float
from eegnn._spmm import spmm
from eegnn._tracing import is_traced

Norm = Literal["sym", "mean", "sum"]
#: Entries of the matrix are numbered by ``int64``.
MAX_NODES = math.isqrt(2**63 - 1)


class Adjacency:
    r"""A graph without self-loops, ready to propagate features.

    Holds one symmetric CSR structure with ``int32`` indices and the degrees :math:`d`. All that
    is propagated with are matrices of this structure, so the backward pass reads it too: no
    transpose, no second copy, no scatter. In a weighted or directed graph the two entries of a pair
    of nodes have different values, of which one may be 0.

    Build it with :meth:`from_edge_index`; it never changes and may be used for any number of
    forward passes, by any number of models.

    Attributes:
        rowptr, col: the CSR structure, shapes ``[n + 1]`` and ``[num_edges]``.
        degree: ``int64 [n]``. Of the whole graph, also in a selection: see :mod:`eegnn.subgraph`.
        batch: ``int64 [n]``, the graph of each node, or ``None`` for a single graph.
        num_graphs: number of graphs.
        nodes: ``int64 [n]``, for a selection the indices of its nodes in the graph that
            :meth:`from_edge_index` saw; ``None`` if nothing was left out.
        num_targets: results are wanted at the first so many nodes, which have all their entries;
            at all of them, but in a :func:`~eegnn.subgraph.neighborhood`.
        weight: ``[num_edges]``, the weight of each CSR entry, or ``None`` if there are no weights.
        weighted_degree: ``[n]``, the sum of the weights of the edges that end at each node; in a
            directed graph without weights, their number.
        mask: ``[num_edges]``, a factor on the normalised value of each CSR entry, or ``None``.
        listed: ``bool [num_edges]``, in a directed graph whether an edge has the direction of this
            CSR entry, from its column to its row; ``None`` in an undirected one.
        entries: ``int [num_edges]``, for some graphs of a batch the positions of their CSR entries
            in the whole batch.
        pairs: ``int64 [2, P]``, the pairs of nodes to predict for, or ``None``; see
            :meth:`with_pairs`.
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
        self.weight: Tensor | None = None
        self.weighted_degree = degree
        self.mask: Tensor | None = None
        self.listed: Tensor | None = None
        self.entries: Tensor | None = None
        self.pairs: Tensor | None = None
        self._source = source
        self._values: dict[tuple[Norm, torch.dtype], tuple[Tensor, Tensor]] = {}
        self._row: Tensor | None = None
        self._edge_index: Tensor | None = None
        self._column_weight: Tensor | None = None
        self._column_mask: Tensor | None = None
        self._ptr: Tensor | None = None
        self._opposite: Tensor | None = None
        self._columns: tuple[Tensor, Tensor] | None = None

    @classmethod
    def from_edge_index(
        cls,
        edge_index: Tensor,
        num_nodes: int | None = None,
        batch: Tensor | None = None,
        num_graphs: int | None = None,
        *,
        edge_weight: Tensor | None = None,
        directed: bool | None = None,
    ) -> Adjacency:
        """Check an edge list and build the structure.

        Self-loops are removed (Theorem 1 needs it), and duplicates are merged.

        Args:
            edge_index: integer tensor ``[2, E]``, as in PyG; or a sparse matrix ``[n, n]``, PyG's
                ``adj_t``, whose values are the weights if they are not all 1.
            num_nodes: number of nodes; by default the length of ``batch``, else the largest index
                plus one.
            batch: ``[num_nodes]``, the graph of each node, ascending, as PyG's loaders make it.
            num_graphs: number of graphs, where the last ones may have no nodes; by default the
                last entry of ``batch`` plus one.
            edge_weight: see :meth:`weighted`.
            directed: ``True`` keeps the direction of edges; ``False`` uses each in both
                directions; ``None`` does that too, with a warning if ``edge_index`` is directed.

        Raises:
            TypeError: an argument has the wrong type or dtype.
            ValueError: an argument has the wrong shape, an index is out of range, or an edge
                joins two graphs.
        """
        if is_sparse(edge_index):
            if edge_weight is not None:
                raise ValueError("edge_weight must be None: the sparse edge_index has its values")
            matrix, num_nodes = edge_index, edge_index.size(0) if num_nodes is None else num_nodes
            edge_index, edge_weight = from_sparse(matrix, num_nodes)
        edge_index = check_edge_index(edge_index)
        if num_nodes is None:
            num_nodes = infer_num_nodes(edge_index, batch)
        n = _check.integer("num_nodes", num_nodes, at_least=0, at_most=MAX_NODES)
        batch, num_graphs, has_loops = check_values(edge_index, n, batch, num_graphs)
        key, listed = matrix_entries(edge_index, n, directed, has_loops, batch)
        row, col = key // max(n, 1), key % max(n, 1)
        # What bincount does too, but for that a GPU would be waited for.
        degree = row.new_zeros(n).index_add_(0, row, torch.ones_like(row))
        dtype = torch.int32 if max(key.numel(), n) < 2**31 else torch.int64
        adj = cls(
            rowptr=row_pointer(degree, dtype),
            col=col.to(dtype),
            degree=degree,
            batch=batch,
            num_graphs=num_graphs,
            source=edge_index.to(dtype, copy=True),
        )
        if listed is not None:
            adj.listed = listed
            ones = listed.to(widest_float(listed.device))
            adj.weighted_degree = adj._make_values(ones, adj._values)
        return adj if edge_weight is None else adj.weighted(edge_weight)

    def weighted(self, edge_weight: Tensor) -> Adjacency:
        r"""Return the same graph with weights.

        The matrix :math:`\mathbf{A}` that is propagated with then holds :math:`w_{ji}`, the weight
        of the edge from :math:`j` to :math:`i`, in row :math:`i` and column :math:`j`, and as in
        PyG's ``gcn_norm`` degrees are :math:`d_i = \sum_j w_{ji}`. An edge that ``edge_index``
        lists in both directions has the weight of each; one that it lists in one direction has its
        weight in both, unless the graph is directed. Columns that repeat an edge are averaged, so
        that weights of 1 are the same as none.

        Gradients flow to ``edge_weight``. As everywhere in PyTorch, what is to be differentiated
        again is to be made again.

        Args:
            edge_weight: ``[E]``, non-negative, a number for each column of the ``edge_index`` given
                to :meth:`from_edge_index`.
        """
        check_edge_weight(edge_weight, self._source_columns().size(1))
        weight = self._of_entries(edge_weight)
        graph = copy.copy(self)
        graph.weight, graph._values = weight, {}
        graph.weighted_degree = self._make_values(weight, graph._values)
        return graph

    def masked(self, edge_mask: Tensor) -> Adjacency:
        r"""Return the same graph with a factor on what each edge carries.

        Other than a weight, a factor leaves the degrees as they are: what is propagated with is
        :math:`\mathbf{\bar A} \odot \mathbf{M}`. So the explainers of PyG mask messages. Edges have
        the factors of their columns as they have weights, see :meth:`weighted`, and gradients flow
        to ``edge_mask``.

        Args:
            edge_mask: ``[E]``, a number for each column of the ``edge_index`` given to
                :meth:`from_edge_index`.
        """
        columns = self._source_columns().size(1)
        if edge_mask.shape != (columns,):
            raise ValueError(f"edge_mask must have shape [{columns}], got {list(edge_mask.shape)}")
        mask = self._of_entries(edge_mask)
        graph = copy.copy(self)
        graph.mask, graph._column_mask, graph._values = mask, edge_mask, {}
        for norm in get_args(Norm):  # all at once, see _make_values
            value, transposed = self._norm_values(norm, mask.dtype)
            opposite = mask.index_select(0, self._opposite_entries())
            graph._values[norm, mask.dtype] = value * mask, transposed * opposite
        return graph

    def unweighted(self) -> Adjacency:
        """Return the same graph without weights, masks and directions."""
        if not self.has_own_values:
            return self
        graph = copy.copy(self)
        graph.weight, graph.listed, graph.weighted_degree = None, None, self.degree
        graph.mask = graph._column_mask = None
        graph._values, graph._edge_index, graph._columns = {}, None, None
        return graph

    def with_pairs(self, edge_label_index: Tensor) -> Adjacency:
        """Return the same graph with pairs of nodes, for which ``level="edge"`` predicts.

        Args:
            edge_label_index: ``[2, P]``, as PyG's ``RandomLinkSplit`` makes it; any two nodes, with
                or without an edge between them.
        """
        pairs = check_edge_index(edge_label_index, "edge_label_index").long()
        if pairs.numel() and not is_traced():
            low, high = read(pairs.min(), pairs.max())
            if low < 0 or high >= self.num_nodes:
                raise ValueError(
                    f"edge_label_index must hold indices in 0 … {self.num_nodes - 1}, got "
                    f"{low if low < 0 else high}"
                )
        graph = copy.copy(self)
        graph.pairs = pairs
        return graph

    @property
    def device(self) -> torch.device:
        """Where the structure is."""
        return self.col.device

    @property
    def num_nodes(self) -> int:
        """Number of nodes :math:`n`."""
        return self.rowptr.numel() - 1

    @property
    def num_edges(self) -> int:
        """Number of CSR entries: two for each pair of neighbours, also in a directed graph."""
        return self.col.numel()

    @property
    def is_directed(self) -> bool:
        """Whether there is an edge without one in the opposite direction."""
        return self.listed is not None

    @property
    def has_own_values(self) -> bool:
        """Whether the graph is weighted, masked or directed."""
        return not (self.weight is self.mask is self.listed is None)

    @property
    def row(self) -> Tensor:
        """``int64 [num_edges]``: the row of each CSR entry."""
        if self._row is None:
            self._row = self._of_rows(torch.arange(self.num_nodes, device=self.device))
        return self._row

    @property
    def edge_index(self) -> Tensor:
        """``int64 [2, num_edges]``, for layers that take PyG's format; of a directed graph only the
        edges that it has."""
        if self._edge_index is None:
            self._edge_index = torch.stack([self.col.long(), self.row])
            if self.listed is not None:
                self._edge_index = self._edge_index[:, self.listed]
        return self._edge_index

    @property
    def edge_weight(self) -> Tensor | None:
        """The weights in the order of the columns of :attr:`edge_index`, or ``None``."""
        return self._of_columns(self.weight)

    @property
    def edge_mask(self) -> Tensor | None:
        """The mask in the order of the columns of :attr:`edge_index`, or ``None``."""
        return self._of_columns(self.mask)

    @property
    def ptr(self) -> Tensor:
        """``int32 [num_graphs + 1]``, or ``int64``: where the nodes of each graph begin."""
        if self._ptr is None:
            batch = self.degree.new_zeros(self.num_nodes) if self.batch is None else self.batch
            graphs = torch.arange(self.num_graphs + 1, device=self.device)
            self._ptr = torch.searchsorted(batch, graphs).to(self.rowptr.dtype)
        return self._ptr

    def propagate(self, x: Tensor, norm: Norm = "sym", at_targets: bool = False) -> Tensor:
        r"""Return :math:`\mathbf{\bar A}\mathbf{X}`.

        Args:
            x: ``[n, d]``, ``[n]``, or ``[s, n, d]`` for several at once.
            norm: ``"sym"`` for :math:`\mathbf{D}^{-1/2}\mathbf{A}\mathbf{D}^{-1/2}`, ``"mean"``
                for :math:`\mathbf{D}^{-1}\mathbf{A}`, ``"sum"`` for :math:`\mathbf{A}`.
            at_targets: return the first ``num_targets`` rows alone.
        """
        if x.dtype in (torch.float16, torch.bfloat16):  # the CPU kernels need float32
            return self.propagate(x.float(), norm, at_targets).to(x.dtype)
        if x.dim() == 3:  # side by side: one product
            side = self.propagate(x.transpose(0, 1).flatten(1), norm, at_targets)
            return side.unflatten(1, (x.size(0), x.size(2))).transpose(0, 1)
        rowptr = self.rowptr[: self.num_targets + 1] if at_targets else self.rowptr
        return spmm(rowptr, self.col, *self._norm_values(norm, x.dtype), x)

    def propagate_by(self, value: Tensor, x: Tensor) -> Tensor:
        r"""Return :math:`\mathbf{B}\mathbf{X}` for values of one's own, such as those of attention.

        Args:
            value: of each CSR entry, ``[num_edges]``.
            x: ``[n, d]`` or ``[n]``.
        """
        transposed = value.detach()
        if x.requires_grad:
            transposed = transposed.index_select(0, self._opposite_entries())
        return spmm(self.rowptr, self.col, value, transposed, x)

    def edge_features(self, edge_attr: Tensor) -> Tensor:
        """Give each column of :attr:`edge_index` its features.

        An edge that was listed in one direction has the same features in both, unless the graph is
        directed; one that was listed in both keeps those of each. Columns that repeat an edge are
        averaged, as they were merged, and self-loops count for nothing.

        Args:
            edge_attr: ``[E, d]``, a row for each column of the ``edge_index`` given to
                :meth:`from_edge_index`.
        """
        found = self._of_entries(edge_attr)
        return found if self.listed is None else found[self.listed]

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
        row, col = self._source_columns().long()
        if self._column_weight is None:
            entries = (self.row, self.col, self.num_nodes)
            self._column_weight = share_of_edge(self._source_columns(), *entries)
        weighted = edge_attr * self._column_weight.to(edge_attr.dtype).unsqueeze(-1)
        if self._column_mask is not None:
            weighted = weighted * self._column_mask.unsqueeze(-1)
        out = edge_attr.new_zeros(self.num_nodes, edge_attr.size(-1))
        return out.index_add(0, row, weighted).index_add(0, col, weighted)

    # PyG's ``Data`` calls these four of whatever it holds.
    def to(self, device: torch.device | str | int, non_blocking: bool = False) -> Adjacency:
        """Return a copy on another device."""
        return self._map(lambda tensor: tensor.to(device, non_blocking=non_blocking))

    def cpu(self) -> Adjacency:
        """Return a copy on the CPU."""
        return self.to("cpu")

    def cuda(self, device: int | str | None = None, non_blocking: bool = False) -> Adjacency:
        """Return a copy on a CUDA device."""
        return self.to("cuda" if device is None else device, non_blocking)

    def pin_memory(self) -> Adjacency:
        """Return a copy in memory from which a GPU reads while other work goes on."""
        return self._map(Tensor.pin_memory)

    def _map(self, function: Callable[[Tensor], Tensor]) -> Adjacency:
        changed: dict[int, Tensor] = {}  # what is one tensor here is one tensor there

        def change(tensor: Tensor) -> Tensor:
            if id(tensor) not in changed:
                changed[id(tensor)] = function(tensor)
            return changed[id(tensor)]

        copied = copy.copy(self)
        copied.__dict__ = tree_map_only(Tensor, change, vars(self))
        return copied

    @property
    def edge_columns(self) -> Tensor:
        """``int64 [2, E]``, the original ``edge_index``."""
        return self._source_columns().long()

    @property
    def num_edge_columns(self) -> int | None:
        """Columns of the original ``edge_index``; ``edge_attr`` has a row for each."""
        return None if self._source is None else self._source.size(1)

    def _norm_values(self, norm: Norm, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """Values of the CSR entries, ``[num_edges]``, and those of the transposed matrix."""
        if (norm, dtype) not in self._values:
            _check.choice("norm", norm, get_args(Norm))
            if self.has_own_values:
                return self._converted_values(norm, dtype)
            if norm == "sum":
                value = transposed = torch.ones(self.num_edges, dtype=dtype, device=self.device)
            else:
                # A node with an entry has degree ≥ 1: no division by zero.
                degree = self.degree.to(widest_float(self.device)).clamp(min=1)
                target, source = self._of_rows(degree), degree.index_select(0, self.col)
                if norm == "sym":
                    value = transposed = (target * source).rsqrt().to(dtype)
                else:
                    value, transposed = target.reciprocal().to(dtype), source.reciprocal().to(dtype)
            self._values[norm, dtype] = value, transposed
        return self._values[norm, dtype]

    def _converted_values(self, norm: Norm, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """Return what :meth:`_make_values` has made, in another precision."""
        known = next(pair for (name, _), pair in self._values.items() if name == norm)
        value, transposed = known[0].to(dtype), known[1].to(dtype)
        if not value.requires_grad:  # else a second backward pass would meet a freed graph
            self._values[norm, dtype] = value, transposed
        return value, transposed

    def _make_values(self, value: Tensor, values: dict[Any, tuple[Tensor, Tensor]]) -> Tensor:
        """Fill ``values`` from one ``[num_edges]`` of each CSR entry; return the degrees ``[n]``.

        All normalisations are made at once: one made within a checkpointed layer would not be made
        again when that layer is computed again.
        """
        opposite = self._opposite_entries()
        found, degree = weighted_values(value, self.row, self.col, opposite, self.num_nodes)
        values |= {(norm, value.dtype): pair for norm, pair in found.items()}
        return degree

    def _opposite_entries(self) -> Tensor:
        """``[num_edges]``: the CSR entry of the same two nodes in the other direction."""
        if self._opposite is None:  # entries sorted by column, then by row
            self._opposite = self.col.argsort(stable=True)
        return self._opposite

    def _of_rows(self, value: Tensor) -> Tensor:
        """Return a value for each CSR entry, from one ``[n]`` for the node of its row."""
        return torch.repeat_interleave(value, self.rowptr.diff(), output_size=self.num_edges)

    def _source_columns(self) -> Tensor:
        """Return the ``edge_index`` given to :meth:`from_edge_index`."""
        if self._source is None:
            raise ValueError("edge features belong to the whole graph, not to a selection of it")
        return self._source

    def _of_entries(self, value: Tensor) -> Tensor:
        """Return a value for each CSR entry, from one ``[E, ...]`` for each column of the original
        ``edge_index``; 0 for the direction that an edge of a directed graph does not have."""
        if self._columns is None:
            self._columns = match_columns(
                self._source_columns(), self.row, self.col, self.num_nodes, self.is_directed
            )
        column, entry = self._columns
        found = value.index_select(0, column)
        if column.numel() == self.num_edges and self.listed is None:  # a permutation
            return found
        shape = (-1, *[1] * (value.dim() - 1))
        count = torch.bincount(entry, minlength=self.num_edges).clamp(min=1).to(value.dtype)
        total = value.new_zeros(self.num_edges, *value.shape[1:]).index_add(0, entry, found)
        return total / count.view(shape)

    def _of_columns(self, value: Tensor | None) -> Tensor | None:
        """Return a value for each column of :attr:`edge_index`, from one for each CSR entry."""
        return value if value is None or self.listed is None else value[self.listed]

    def __repr__(self) -> str:
        graphs = f", num_graphs={self.num_graphs}" if self.batch is not None else ""
        kind = ", weighted" if self.weight is not None else ""
        kind += ", masked" if self.mask is not None else ""
        kind += ", directed" if self.is_directed else ""
        return f"Adjacency(num_nodes={self.num_nodes}, num_edges={self.num_edges}{graphs}{kind})"


def row_pointer(count: Tensor, dtype: torch.dtype) -> Tensor:
    """Return where each of these many entries a row begin, ``[n + 1]``."""
    return torch.nn.functional.pad(count.cumsum(0), (1, 0)).to(dtype)
