"""From a problem to what the loop iterates over."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from eegnn.data.categories import one_hot
from eegnn.data.problem import Problem
from eegnn.engine.blocked.inference import check_model
from eegnn.engine.blocked.partition import partition
from eegnn.graph import Adjacency
from eegnn.nn.model import GraphModel
from eegnn.train.distributed import ALONE, Ranks


@dataclass(frozen=True)
class Units:
    """Graphs as one, and the units among them that count.

    Attributes:
        nodes, edges: features as the problem has them, or ``None``.
        adj: the graph, or the graphs side by side.
        y: labels of all units; ``None`` where there are none to learn from.
        index: which units count, ``None`` for all.
        stand_in: none counts: what a rank takes who has no part in a batch, so that it takes part
            in the step.
        node_categories, edge_categories: see :class:`~eegnn.data.problem.Problem`.
    """

    nodes: Tensor | None
    edges: Tensor | None
    adj: Adjacency
    y: Tensor | None
    index: Tensor | None = None
    stand_in: bool = False
    node_categories: tuple[int, ...] = ()
    edge_categories: tuple[int, ...] = ()

    # Categories are expanded anew each time: batches for evaluation are kept, and the features of
    # those of Peptides-func would take 560 MB instead of 85 MB.
    @property
    def x(self) -> Tensor | None:
        """Node features as a model takes them, ``[n, in_channels]``."""
        return None if self.nodes is None else one_hot("x", self.nodes, self.node_categories)

    @property
    def edge_attr(self) -> Tensor | None:
        """Edge features as a model takes them, ``[E, edge_dim]``."""
        if self.edges is None:
            return None
        return one_hot("edge_attr", self.edges, self.edge_categories)

    @property
    def labels(self) -> Tensor:
        """Labels of the units that count."""
        assert self.y is not None
        return self.y if self.index is None else self.y[self.index]

    @property
    def count(self) -> int:
        """How many units count."""
        return 0 if self.stand_in else len(self.labels)

    def of(self, out: Tensor) -> Tensor:
        """Outputs of the units that count."""
        return out if self.index is None else out[self.index]


class Batches:
    """The parts of a problem, batched.

    A single graph is taken whole, the parts then differing in the nodes that count, or cut into
    blocks, of which training takes one after the other with the neighbours of its nodes. With many
    graphs or blocks, training takes them in a new random order each epoch.

    Several ranks share the graphs of each batch of training, and the batches of a part, which are
    those that a single process has.

    Args:
        problem: what to train on.
        batch_size: graphs a batch, of all ranks together.
        with_edges: whether the model takes edge features.
        blocks: cut the one graph into so many; 0 to take it whole.
        ranks: this process and those it shares with.
    """

    def __init__(
        self,
        problem: Problem,
        batch_size: int,
        with_edges: bool = True,
        blocks: int = 0,
        ranks: Ranks = ALONE,
    ) -> None:
        if blocks and problem.inductive:
            raise ValueError(f"blocks cut one graph, but {problem.name} has many: leave blocks=0")
        if ranks.size > 1 and not problem.inductive:
            raise ValueError(
                f"{problem.name} is one graph, and torchrun shares out many: train it with "
                f"--nproc-per-node=1, or without torchrun"
            )
        self.problem = problem
        self.ranks = ranks
        self.batch_size = batch_size
        self.with_edges = with_edges
        self._fixed: dict[str, list[Units]] = {}
        self._whole = None if problem.inductive else self._gather(problem.graphs)
        self.blocks = None
        if blocks and self._whole is not None:
            self.blocks = partition(self._whole.adj, num_blocks=blocks)

    def training(self, generator: torch.Generator) -> Iterator[Units]:
        """The own share of the training part, for one epoch.

        Args:
            generator: the same on all ranks.
        """
        if self.blocks is not None:
            yield from self._block_batches(torch.randperm(len(self.blocks), generator=generator))
            return
        if self._whole is not None:
            yield from self.part("train")
            return
        order = self.problem.train[torch.randperm(self.problem.train.numel(), generator=generator)]
        for index in order.split(self.batch_size):
            own = self.ranks.share(index)
            if own.numel():
                yield self._batch(own)
            else:
                yield replace(self._batch(index[:1]), stand_in=True)

    def part(self, name: str) -> list[Units]:
        """The own batches of ``"train"``, ``"val"`` or ``"test"``, in a fixed order, made once."""
        if name not in self._fixed:
            index: Tensor = getattr(self.problem, name)
            if self._whole is not None:
                self._fixed[name] = [replace(self._whole, index=index)]
            else:
                own = self.ranks.share(index.split(self.batch_size))
                self._fixed[name] = [self._batch(i) for i in own]
        return self._fixed[name]

    def whole(self) -> Units | None:
        """The one graph with all its nodes, where there is just one."""
        return self._whole

    def _block_batches(self, order: Tensor) -> Iterator[Units]:
        """A batch for each block that has nodes to train on; their neighbours do not count."""
        whole, blocks = self._whole, self.blocks
        assert whole is not None
        assert whole.y is not None
        assert blocks is not None
        training = torch.zeros(blocks.num_nodes, dtype=torch.bool)
        training[self.problem.train] = True
        for number in order.tolist():
            if not training[blocks.cores[number]].any():
                continue
            nodes, adj = blocks.subgraph(number, hops=1)
            counts = training[nodes] & (blocks.assignment[nodes] == number)
            yield replace(
                whole,
                nodes=None if whole.nodes is None else whole.nodes[nodes],
                adj=adj,
                y=whole.y[nodes],
                index=counts.nonzero().view(-1),
            )

    def _batch(self, index: Tensor) -> Units:
        return self._gather([self.problem.graphs[i] for i in index.tolist()])

    def _gather(self, graphs: Sequence[Data]) -> Units:
        problem = self.problem
        return gather(graphs, self.with_edges, problem.node_categories, problem.edge_categories)


def check_blocks(model: GraphModel) -> None:
    """Refuse a model that cannot be trained, or evaluated, block by block."""
    check_model(model)
    if model.edge_dim is not None:
        raise ValueError("blocks are trained on without edge features, which this data set has")


def gather(
    graphs: Sequence[Data],
    with_edges: bool,
    node_categories: tuple[int, ...] = (),
    edge_categories: tuple[int, ...] = (),
) -> Units:
    """Put graphs side by side, with or without their edge features."""
    if len(graphs) == 1:  # as it is: a large graph is not copied
        data, batch = graphs[0], None
    else:
        data = Batch.from_data_list(list(graphs))
        batch = data.batch
    adj = Adjacency.from_edge_index(data.edge_index, data.num_nodes, batch, num_graphs=len(graphs))
    return Units(
        data.x,
        data.edge_attr if with_edges else None,
        adj,
        data.y,
        node_categories=node_categories,
        edge_categories=edge_categories,
    )
