"""Where a graph is read from, a few nodes at a time: memory, mapped files, or PyG's stores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import FeatureStore, GraphStore
from torch_geometric.data.graph_store import EdgeAttr, EdgeLayout

from eegnn._check import reason
from eegnn._edge_list import check_edge_index
from eegnn.graph import Adjacency, row_pointer


class GraphSource(ABC):
    """A graph of which features and neighbours can be read for a few nodes at a time.

    Each edge is there in both directions, once, and there are no self-loops. Whoever keeps a graph
    elsewhere, such as in a database, derives a class and writes these three methods.

    Attributes:
        num_nodes: number of nodes.
        num_edges: number of edges, counted in both directions.
        device: where the tensors are that the methods take and return.
    """

    num_nodes: int
    num_edges: int
    device = torch.device("cpu")

    @abstractmethod
    def features(self, nodes: Tensor) -> Tensor:
        """Return the features ``[k, m]`` of nodes ``int64 [k]``."""

    @abstractmethod
    def degree(self, nodes: Tensor) -> Tensor:
        """Return how many neighbours nodes ``int64 [k]`` have, ``int64 [k]``."""

    @abstractmethod
    def neighbors(self, nodes: Tensor) -> tuple[Tensor, Tensor]:
        """Return the neighbours of nodes ``int64 [k]``: how many each has, ``int64 [k]``, and all
        of them, node by node, those of a node ascending."""

    def whole(self) -> tuple[Tensor, Adjacency]:
        """Return features ``[n, F]`` and structure of the whole graph, by reading all of it."""
        nodes = torch.arange(self.num_nodes, device=self.device)
        count, col = self.neighbors(nodes)
        dtype = torch.int32 if max(col.numel(), self.num_nodes) < 2**31 else torch.int64
        return self.features(nodes), Adjacency(row_pointer(count, dtype), col.to(dtype), count)

    def with_edges(
        self, added: Tensor | None = None, removed: Tensor | None = None, x: Tensor | None = None
    ) -> ChangedGraph:
        """Return this graph with changes; what does not change is read from here, nothing is sorted
        again, and degrees follow.

        Args:
            added, removed: ``[2, E]``, edges, in one direction or in both.
            x: features ``[k, m]`` of new nodes, whose numbers begin at ``num_nodes``.
        """
        return ChangedGraph(self, added, removed, x)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(num_nodes={self.num_nodes}, num_edges={self.num_edges})"


class TensorGraph(GraphSource):
    """A graph in memory.

    Args:
        x: node features ``[n, m]``.
        adj: its structure, without weights.
    """

    def __init__(self, x: Tensor, adj: Adjacency) -> None:
        self.x, self.adj = x, adj
        self.rowptr, self.col = adj.rowptr, adj.col
        self.num_nodes, self.num_edges, self.device = adj.num_nodes, adj.num_edges, adj.device

    def features(self, nodes: Tensor) -> Tensor:
        """Return the features of nodes ``int64 [k]``, rows of ``x``, ``[k, F]``."""
        return self.x.index_select(0, nodes)

    def degree(self, nodes: Tensor) -> Tensor:
        """Differences of the row pointer."""
        return (self.rowptr[nodes + 1] - self.rowptr[nodes]).long()

    def neighbors(self, nodes: Tensor) -> tuple[Tensor, Tensor]:
        """Rows of the CSR structure."""
        count = self.degree(nodes)
        return count, self.col.index_select(0, ranges(self.rowptr[nodes].long(), count))

    def whole(self) -> tuple[Tensor, Adjacency]:
        """What it was made of."""
        return self.x, self.adj


class MappedGraph(TensorGraph):
    """A graph in a folder, mapped into memory: of a file only those pages are read that are needed.

    The files are ``graph.rowptr.npy`` and ``graph.col.npy``, the CSR structure with the neighbours
    of each node ascending, and ``graph.x.npy``, features as ``float32``; without features there is
    none. :func:`write_graph` writes them.

    Args:
        folder: the folder.
    """

    def __init__(self, folder: str | PathLike[str]) -> None:
        self.folder = Path(folder)
        self.rowptr, self.col = self._map("rowptr", "iu", 1), self._map("col", "iu", 1)
        self.num_nodes, self.num_edges = self.rowptr.numel() - 1, self.col.numel()
        if self.num_nodes < 0 or int(self.rowptr[-1]) != self.num_edges:
            raise ValueError(f"{self.folder}: graph.rowptr.npy does not end at {self.num_edges}")
        self.x = torch.empty(self.num_nodes, 0)
        if (self.folder / "graph.x.npy").exists():
            self.x = self._map("x", "f", 2)
        if self.x.size(0) != self.num_nodes:
            raise ValueError(
                f"{self.folder}: graph.x.npy must have a row for each of {self.num_nodes} nodes, "
                f"got {self.x.size(0)}"
            )

    def _map(self, name: str, kinds: str, dims: int) -> Tensor:
        path = self.folder / f"graph.{name}.npy"
        if not path.is_file():
            raise FileNotFoundError(f"{path} does not exist")
        try:
            found = np.load(path, mmap_mode="c", allow_pickle=False)
        except Exception as error:  # bytes from anywhere, and numpy maps no empty array
            raise ValueError(
                f"{path} is damaged, empty, or no .npy file ({reason(error)})"
            ) from error
        if found.dtype.kind not in kinds or found.ndim != dims:
            raise ValueError(f"{path} has dtype {found.dtype} and {found.ndim} dimensions")
        return torch.from_numpy(found)

    def whole(self) -> tuple[Tensor, Adjacency]:
        """Everything, still mapped; only what is made of it is in memory."""
        degree = self.rowptr.diff().long()
        return self.x, Adjacency(self.rowptr.to(self.col.dtype), self.col, degree)


class StoreGraph(TensorGraph):
    """A graph in PyG's stores, as their loaders take it; ``Data`` is both stores at once.

    Structure is taken from the graph store once, as CSC or CSR; the interface of PyG has no way to
    ask for a part of it. Features are asked for when they are needed.

    Args:
        feature_store: has the features, as ``attr_name``.
        graph_store: has the edges.
        group_name, attr_name: how the features are called.
        edge_type: how the edges are called.
    """

    def __init__(
        self,
        feature_store: FeatureStore,
        graph_store: GraphStore,
        *,
        group_name: Any = None,
        attr_name: str = "x",
        edge_type: Any = None,
    ) -> None:
        self.store, self.key = feature_store, {"attr_name": attr_name}
        if group_name is not None:  # those of Data have no groups
            self.key["group_name"] = group_name
        size = feature_store.get_tensor_size(**self.key)
        assert size is not None
        known = [a for a in graph_store.get_all_edge_attrs() if a.edge_type == edge_type]
        layouts = {attr.layout: attr for attr in known}
        for layout, pointer in ((EdgeLayout.CSC, 1), (EdgeLayout.CSR, 0)):  # symmetric: the same
            if layout in layouts:
                found = graph_store.get_edge_index(layouts[layout])
                self.rowptr, self.col = found[pointer], found[1 - pointer]
                break
        else:
            if not known:
                raise ValueError(f"graph_store has no edges of edge_type={edge_type!r}")
            attr = EdgeAttr(edge_type, EdgeLayout.COO, False, (size[0], size[0]))
            adj = Adjacency.from_edge_index(torch.stack(graph_store.get_edge_index(attr)), size[0])
            self.rowptr, self.col = adj.rowptr, adj.col
        self.num_nodes, self.num_edges = self.rowptr.numel() - 1, self.col.numel()

    def features(self, nodes: Tensor) -> Tensor:
        """Return the features of nodes ``int64 [k]`` that the feature store has, ``[k, F]``."""
        return torch.as_tensor(self.store.get_tensor(**self.key, index=nodes))

    def whole(self) -> tuple[Tensor, Adjacency]:
        """Return features and structure of the whole graph; the store is asked for all features."""
        return GraphSource.whole(self)


class ChangedGraph(GraphSource):
    """Another graph with some changes, of which the rows of the nodes concerned are kept here.

    Made by :meth:`GraphSource.with_edges`.
    """

    def __init__(
        self,
        base: GraphSource,
        added: Tensor | None = None,
        removed: Tensor | None = None,
        x: Tensor | None = None,
    ) -> None:
        self.base, self.x, self.device = base, x, base.device
        self.num_nodes = n = base.num_nodes + (0 if x is None else x.size(0))
        added, removed = _both_ways("added", added, n), _both_ways("removed", removed, n)
        new = torch.arange(base.num_nodes, n, device=base.device)
        self.changed = torch.unique(torch.cat([added[0], removed[0], new]))
        old = self.changed[self.changed < base.num_nodes]
        count, col = base.neighbors(old)
        known = torch.repeat_interleave(old, count) * n + col
        gone = removed[0] * n + removed[1]
        if not bool(torch.isin(gone, known).all()):
            edge = removed[:, ~torch.isin(gone, known)][:, 0].tolist()
            raise ValueError(f"removed must name edges of the graph, got {edge}, which is none")
        kept = known[~torch.isin(known, gone)]
        entry = torch.unique(torch.cat([kept, added[0] * n + added[1]]))
        row = torch.searchsorted(self.changed, entry // max(n, 1))
        self.rowptr = row_pointer(torch.bincount(row, minlength=len(self.changed)), torch.int64)
        self.col = entry % max(n, 1)
        self.num_edges = base.num_edges + self.col.numel() - col.numel()

    def features(self, nodes: Tensor) -> Tensor:
        """Those of the graph below, and of the new nodes."""
        is_new = nodes >= self.base.num_nodes
        below = self.base.features(nodes[~is_new])
        if self.x is None:
            return below
        found = self.x.new_empty(nodes.numel(), self.x.size(1))
        found[~is_new], found[is_new] = below, self.x[nodes[is_new] - self.base.num_nodes]
        return found

    def degree(self, nodes: Tensor) -> Tensor:
        """Those of the graph below, but of changed rows."""
        place, is_changed = self._find(nodes)
        found = torch.empty_like(nodes)
        found[~is_changed] = self.base.degree(nodes[~is_changed])
        found[is_changed] = self.rowptr.diff()[place[is_changed]]
        return found

    def neighbors(self, nodes: Tensor) -> tuple[Tensor, Tensor]:
        """Those of the graph below, but of changed rows."""
        place, is_changed = self._find(nodes)
        below, col = self.base.neighbors(nodes[~is_changed])
        count, start = torch.empty_like(nodes), torch.empty_like(nodes)
        count[~is_changed], start[~is_changed] = below, below.cumsum(0) - below
        rows = place[is_changed]
        count[is_changed] = self.rowptr[rows + 1] - self.rowptr[rows]
        start[is_changed] = self.rowptr[rows] + col.numel()
        return count, torch.cat([col.long(), self.col]).index_select(0, ranges(start, count))

    def _find(self, nodes: Tensor) -> tuple[Tensor, Tensor]:
        """The changed row of each node, and whether it has one."""
        if not self.changed.numel():
            return nodes, torch.zeros_like(nodes, dtype=torch.bool)
        place = torch.searchsorted(self.changed, nodes).clamp_(max=self.changed.numel() - 1)
        return place, self.changed[place] == nodes


def write_graph(folder: str | PathLike[str], x: Tensor | None, adj: Adjacency) -> MappedGraph:
    """Write a graph without weights as :class:`MappedGraph` reads it."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    arrays = {"rowptr": adj.rowptr, "col": adj.col} | ({} if x is None else {"x": x})
    for name, array in arrays.items():
        np.save(folder / f"graph.{name}.npy", array.cpu().numpy())
    return MappedGraph(folder)


def ranges(start: Tensor, count: Tensor) -> Tensor:
    """Return the numbers ``start … start + count − 1`` of each pair, one range after the other."""
    end = count.cumsum(0)
    offset = torch.repeat_interleave(start - end + count, count)
    return offset.add_(torch.arange(offset.numel(), device=offset.device))


def _both_ways(name: str, edge_index: Tensor | None, num_nodes: int) -> Tensor:
    """Edges in both directions, without self-loops, ``int64 [2, E]``."""
    if edge_index is None:
        return torch.empty(2, 0, dtype=torch.int64)
    edges = check_edge_index(edge_index).long()
    if edges.numel() and not 0 <= int(edges.min()) <= int(edges.max()) < num_nodes:
        raise ValueError(
            f"{name} must hold nodes 0 … {num_nodes - 1}, got {int(edges.min())} … "
            f"{int(edges.max())}"
        )
    edges = edges[:, edges[0] != edges[1]]
    return torch.cat([edges, edges.flip(0)], dim=1)
