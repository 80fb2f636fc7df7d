"""Mini-batches of a problem, for training and for evaluation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from eegnn import _check
from eegnn._sparse_linear import sparse_if_faster
from eegnn.compute import CPU, Compute
from eegnn.data.categories import check_categories, one_hot
from eegnn.data.links import draw_links
from eegnn.data.problem import Problem
from eegnn.distributed import ALONE, Ranks
from eegnn.engine.blocked.inference import check_model
from eegnn.engine.blocked.partition import partition
from eegnn.graph import Adjacency
from eegnn.nn.model import GraphModel


@dataclass(frozen=True)
class MiniBatch:
    """Graphs side by side, and the units (nodes, graphs or pairs) with a loss and a score."""

    raw_x: Tensor | None  #: features as the problem has them
    raw_edge_attr: Tensor | None
    adj: Adjacency
    y: Tensor | None  #: labels of all units; ``None`` where there are none to learn from
    index: Tensor | None = None  #: the units with a loss and a score; ``None`` for all
    #: No unit has a loss. A rank takes such a batch when there is no graph left for it, so that it
    #: still takes part in the step.
    is_dummy: bool = False
    node_categories: tuple[int, ...] = ()  #: see :class:`~eegnn.data.problem.Problem`
    edge_categories: tuple[int, ...] = ()

    # Categories are expanded anew each time: batches for evaluation are kept, and the features of
    # those of Peptides-func would take 560 MB instead of 85 MB.
    @property
    def x(self) -> Tensor | None:
        """Node features as a model takes them, ``[n, in_channels]``."""
        return _expanded(self.raw_x, self.node_categories)

    @property
    def edge_attr(self) -> Tensor | None:
        """Edge features as a model takes them, ``[E, edge_dim]``."""
        return _expanded(self.raw_edge_attr, self.edge_categories)

    @property
    def labels(self) -> Tensor:
        """Labels of the units with a loss."""
        assert self.y is not None
        return self.select(self.y)

    @property
    def num_targets(self) -> int:
        """The number of units with a loss."""
        return 0 if self.is_dummy else len(self.labels)

    def select(self, values: Tensor) -> Tensor:
        """Return the rows of the units with a loss, from a row for each unit."""
        return values if self.index is None else values[self.index]

    def to(self, device: torch.device | str) -> MiniBatch:
        """Return a copy on a device; to a CUDA device pinned memory goes while others work."""
        non_blocking = torch.device(device).type == "cuda"
        return self._map(lambda value: value.to(device, non_blocking=non_blocking))

    def pin_memory(self) -> MiniBatch:
        """Return a copy in memory from which a GPU reads while other work goes on."""
        return self._map(lambda value: value.pin_memory())

    def _map(self, function: Callable[[Any], Any]) -> MiniBatch:
        """Call a function of all tensors, and of the graph."""
        names = ("raw_x", "raw_edge_attr", "adj", "y", "index")
        values = {name: getattr(self, name) for name in names}
        changed = {name: function(value) for name, value in values.items() if value is not None}
        return replace(self, **changed)


def _expanded(features: Tensor | None, categories: tuple[int, ...]) -> Tensor | None:
    """Features as a model takes them, which :func:`collate` has checked."""
    return None if features is None else _check.trust(one_hot(features, categories))


class Batches:
    """The training, validation and test part of a problem, as mini-batches.

    A single graph is one batch, and the parts differ in ``index``; or it is cut into blocks, and
    training takes a block at a time with the neighbours of its nodes. With many graphs or blocks,
    training takes them in a new random order each epoch.

    Several ranks share the graphs of each training batch, and the batches of a part in evaluation,
    which are those of a single process.

    Args:
        problem: what to train on.
        batch_size: graphs a batch, of all ranks together.
        with_edges: whether the model takes edge features.
        blocks: cut a single graph into this many; 0 to take it whole.
        ranks: this process and those it shares with.
        compute: where batches are put. A single graph, and what is evaluated, is put there once;
            training batches of many graphs are made by another thread while the device computes.
    """

    def __init__(
        self,
        problem: Problem,
        batch_size: int,
        with_edges: bool = True,
        blocks: int = 0,
        ranks: Ranks = ALONE,
        compute: Compute = CPU,
    ) -> None:
        if blocks and problem.inductive:
            raise ValueError(f"blocks cut one graph, but {problem.name} has many: leave blocks=0")
        if ranks.size > 1 and not problem.inductive:
            raise ValueError(
                f"{problem.name} is one graph, and torchrun shares out many: train it with "
                f"--nproc-per-node=1, or without torchrun"
            )
        check_blocks_compute(blocks, compute)
        self.problem = problem
        self.ranks = ranks
        self.compute = compute
        self.batch_size = batch_size
        self.with_edges = with_edges
        self._parts: dict[str, list[MiniBatch]] = {}
        self._whole = None if problem.inductive else self.load(torch.tensor([0]))
        self.blocks = None
        if self._whole is not None:
            if blocks:
                self.blocks = partition(self._whole.adj, num_blocks=blocks)
            else:
                self._whole = replace(self._whole, raw_x=sparse_if_faster(self._whole.raw_x))

    def training(self, generator: torch.Generator) -> Iterator[MiniBatch]:
        """Yield this rank's share of the training part, for one epoch.

        The order is drawn from ``generator``, which is in the same state on all ranks.
        """
        if self.blocks is not None:
            yield from self._block_batches(torch.randperm(len(self.blocks), generator=generator))
            return
        if self._whole is not None:
            yield from self.part("train")
            return
        if self.problem.draws_negatives:
            yield from self._link_batches(generator)
            return
        order = self.problem.train[torch.randperm(self.problem.train.numel(), generator=generator)]
        yield from self._load_ahead(order.split(self.batch_size))

    def part(self, name: str) -> list[MiniBatch]:
        """Return this rank's batches of ``"train"``, ``"val"`` or ``"test"``, in a fixed order."""
        if name not in self._parts:
            index: Tensor = getattr(self.problem, name)
            if self._whole is not None:
                device = self.compute.device
                self._parts[name] = [replace(self._whole, index=index.to(device))]
            else:
                shard = self.ranks.shard(index.split(self.batch_size))
                self._parts[name] = [self.load(i) for i in shard]
        return self._parts[name]

    def whole(self) -> MiniBatch | None:
        """Return the single graph with all its nodes; ``None`` where there are many graphs."""
        return self._whole

    def _link_batches(self, generator: torch.Generator) -> Iterator[MiniBatch]:
        """Yield the training graphs without some of their links, which are to be predicted."""
        if self.ranks.size > 1:
            raise ValueError(f"{self.problem.name}: links are learned by one process, not by ranks")
        for batch in self.part("train"):
            pairs, y, known = draw_links(batch.adj, generator)
            columns, attr = batch.adj.edge_columns[:, known], batch.raw_edge_attr
            graph = (batch.adj.num_nodes, batch.adj.batch, batch.adj.num_graphs)
            adj = Adjacency.from_edge_index(columns, *graph).with_pairs(pairs)
            attr = None if attr is None else attr[known]
            yield replace(batch, adj=adj, raw_edge_attr=attr, y=y)

    def _block_batches(self, order: Tensor) -> Iterator[MiniBatch]:
        """Yield a batch for each block with training nodes; only the nodes of its core count."""
        whole, blocks = self._whole, self.blocks
        assert whole is not None
        assert whole.y is not None
        assert blocks is not None
        is_training = torch.zeros(blocks.num_nodes, dtype=torch.bool)
        is_training[self.problem.train] = True
        for block in order.tolist():
            if not is_training[blocks.cores[block]].any():
                continue
            nodes, adj = blocks.subgraph(block, hops=1)
            is_target = is_training[nodes] & (blocks.assignment[nodes] == block)
            yield replace(
                whole,
                raw_x=None if whole.raw_x is None else whole.raw_x[nodes],
                adj=adj,
                y=whole.y[nodes],
                index=is_target.nonzero().view(-1),
            )

    def load(self, index: Tensor) -> MiniBatch:
        """Return graphs of the problem, by their numbers ``int64 [·]``, as a batch of their own."""
        return self._send(self._collate(index))

    def _load_ahead(self, indices: Sequence[Tensor]) -> Iterator[MiniBatch]:
        """Yield this rank's share of each batch; a GPU computes while the next one is made."""
        if self.compute.device.type == "cpu":
            yield from map(self._share, indices)
            return
        with ThreadPoolExecutor(max_workers=1) as pool:
            following = pool.submit(self._share, indices[0])
            for index in indices[1:]:
                batch, following = following.result(), pool.submit(self._share, index)
                yield self._send(batch)
            yield self._send(following.result())

    def _share(self, index: Tensor) -> MiniBatch:
        """Make this rank's share of a training batch, on the CPU."""
        shard = self.ranks.shard(index)
        if shard.numel():
            batch = self._collate(shard)
        else:
            batch = replace(self._collate(index[:1]), is_dummy=True)
        return batch.pin_memory() if self.compute.device.type == "cuda" else batch

    def _send(self, batch: MiniBatch) -> MiniBatch:
        device = self.compute.device
        return batch if device.type == "cpu" else batch.to(device)

    def _collate(self, index: Tensor) -> MiniBatch:
        graphs = [self.problem.graphs[i] for i in index.tolist()]
        categories = (self.problem.node_categories, self.problem.edge_categories)
        return collate(graphs, self.with_edges, *categories)


def check_blocks_compute(blocks: int, compute: Compute) -> None:
    """Refuse blocks where they cannot be computed."""
    if blocks and compute != CPU:
        raise ValueError(
            f"blocks are computed on the CPU in precision 32, got device {compute.device} and "
            f"precision {compute.precision}"
        )


def check_blocks(model: GraphModel) -> None:
    """Refuse a model that cannot be trained, or evaluated, block by block."""
    check_model(model)
    if model.edge_dim is not None:
        raise ValueError("blocks are trained on without edge features, which this data set has")


def collate(
    graphs: Sequence[Data],
    with_edges: bool,
    node_categories: tuple[int, ...] = (),
    edge_categories: tuple[int, ...] = (),
) -> MiniBatch:
    """Put graphs side by side, with or without their edge features."""
    if len(graphs) == 1:  # a large graph is not copied
        data, batch = graphs[0], None
    else:
        data = Batch.from_data_list(list(graphs))
        batch = data.batch
    _check_features("x", data.x, node_categories)
    _check_features("edge_attr", data.edge_attr if with_edges else None, edge_categories)
    adj = Adjacency.from_edge_index(data.edge_index, data.num_nodes, batch, num_graphs=len(graphs))
    return MiniBatch(
        data.x,
        data.edge_attr if with_edges else None,
        adj.with_pairs(data.edge_label_index) if "edge_label_index" in data else adj,
        data.y,
        node_categories=node_categories,
        edge_categories=edge_categories,
    )


def _check_features(name: str, features: Tensor | None, categories: tuple[int, ...]) -> None:
    """Check values here, where data is loaded, and not at every step on a GPU."""
    if features is None:
        return
    check_categories(name, features, categories)
    if features.is_floating_point() and features.dim() == 2:  # the model refuses other shapes
        _check.finite(name, features)
