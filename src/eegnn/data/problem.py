"""Problem: what a model is trained on, whatever kind of data set it comes from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import torch
from torch import Tensor
from torch_geometric.data import Data

from eegnn import _check
from eegnn.data.categories import check_columns, width
from eegnn.typing import Level, Task

Metric = Literal["roc_auc", "accuracy", "ap", "mae", "mse", "f1", "hits@20", "mrr"]


@dataclass(frozen=True)
class Problem:
    """Graphs, labels and a split.

    Attributes:
        name: what messages call it.
        graphs: PyG ``Data`` with ``x``, ``edge_index``, ``y`` and perhaps ``edge_attr``. A single
            one unless ``inductive``. With ``level="edge"`` also ``edge_label_index`` ``[2, P]``,
            whose labels are ``y``.
        level: what is predicted, a label for each node, each graph or each pair of nodes.
        task: what the labels are: ``y`` is ``int64 [U]`` for ``"classification"``, ``float
            [U, out_channels]`` for ``"multilabel"`` and ``"regression"``.
        metric: what is reported.
        out_channels: number of classes, labels or targets.
        train, val, test: ``int64``, indices of nodes of the one graph, or, if ``inductive``, of
            graphs.
        inductive: whether parts of the split are different graphs.
        scale: a reported error is multiplied by it (targets are divided by it for training).
        node_categories, edge_categories: number of categories in each of the first columns of
            ``x`` and of ``edge_attr``, which are categorical; the others are numbers. Models see
            :func:`~eegnn.data.categories.one_hot` columns, which are made batch by batch: for the
            atoms of ogbg-molhiv at once they would take 700 MB.
        notes: where splits and features come from, for the record.
    """

    name: str
    graphs: Sequence[Data]
    level: Level
    task: Task
    metric: Metric
    out_channels: int
    train: Tensor
    val: Tensor
    test: Tensor
    inductive: bool
    scale: float = 1.0
    node_categories: tuple[int, ...] = ()
    edge_categories: tuple[int, ...] = ()
    notes: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.inductive and len(self.graphs) != 1:
            raise ValueError(f"{self.name}: a transductive problem has one graph, not many")
        if self.level != "node" and not self.inductive:
            raise ValueError(f"{self.name}: to predict {self.level}s, several graphs are needed")
        units = len(self.graphs) if self.inductive else int(self.graphs[0].num_nodes or 0)
        for part in ("train", "val", "test"):
            index: Tensor = getattr(self, part)
            if index.dtype != torch.int64 or index.dim() != 1:
                raise TypeError(f"{self.name}: {part} must be int64 indices, got {index.dtype}")
            if index.numel() == 0:
                raise ValueError(f"{self.name}: the {part} part of the split is empty")
            if int(index.min()) < 0 or int(index.max()) >= units:
                raise ValueError(f"{self.name}: {part} must hold indices below {units}")
        if self.level == "edge":
            self._check_pairs()
        first = self.graphs[0]
        if first.x is not None:
            check_columns(f"{self.name}: x", first.x, self.node_categories)
        if first.edge_attr is not None:
            check_columns(f"{self.name}: edge_attr", first.edge_attr, self.edge_categories)

    def _check_pairs(self) -> None:
        """Refuse links that the graph of validation or test gives away."""
        for part in ("val", "test") if self.predicts_links else ():
            for index in getattr(self, part).tolist():
                graph = self.graphs[index]
                is_link = graph.y.view(-1) > 0
                pairs, n = graph.edge_label_index[:, is_link], int(graph.num_nodes or 0)
                known = joined(pairs, graph.edge_index, n)
                if known.any():
                    u, v = pairs[:, known][:, 0].tolist()
                    raise ValueError(
                        f"{self.name}: edge_index of the {part} part must not hold a link that is "
                        f"to be predicted, but holds {int(known.sum())}, first ({u}, {v})"
                    )
                if bool(is_link.all()) or not bool(is_link.any()):
                    raise ValueError(
                        f"{self.name}: edge_label of the {part} part must hold both 0 and 1"
                    )

    @property
    def predicts_links(self) -> bool:
        """Whether labels say if there is a link, rather than of which kind it is."""
        return self.level == "edge" and self.task == "multilabel" and self.out_channels == 1

    @property
    def draws_negatives(self) -> bool:
        """Whether training has links only, to which pairs without one are drawn for each step."""
        return self.predicts_links and all(
            bool((self.graphs[index].y > 0).all()) for index in self.train.tolist()
        )

    @property
    def in_channels(self) -> int:
        """Number of node features that a model sees."""
        x = self.graphs[0].x
        return 0 if x is None else width(x.size(1), self.node_categories)

    @property
    def edge_dim(self) -> int | None:
        """Number of edge features that a model sees, or ``None``."""
        edge_attr = self.graphs[0].edge_attr
        return None if edge_attr is None else width(edge_attr.size(1), self.edge_categories)

    def subsample(self, share: float) -> Problem:
        """Keep a share in [0, 1] of the graphs of each part, at least one, evenly spaced and always
        the same.
        """
        _check.number("share", share, 0.0, 1.0)
        if not self.inductive:
            raise ValueError(f"{self.name} is one graph: a share can only be taken of many")
        parts = []
        for part in (self.train, self.val, self.test):
            count = max(1, round(share * len(part)))
            parts.append(part[torch.arange(count) * len(part) // count])
        train, val, test = torch.arange(sum(map(len, parts))).split([len(part) for part in parts])
        return replace(
            self,
            graphs=[self.graphs[index] for index in torch.cat(parts).tolist()],
            train=train,
            val=val,
            test=test,
            notes={**self.notes, "share": f"{share:g} of the graphs of each part, evenly spaced"},
        )

    def __repr__(self) -> str:
        sizes = "/".join(str(len(part)) for part in (self.train, self.val, self.test))
        return f"Problem({self.name}, {self.level}, {self.task}, {self.metric}, {sizes})"


def joined(pairs: Tensor, edge_index: Tensor, num_nodes: int) -> Tensor:
    """Return ``bool [P]``, which pairs ``[2, P]`` an edge joins, in either direction."""
    both = torch.cat([edge_index, edge_index.flip(0)], dim=1)
    return torch.isin(pairs[0] * num_nodes + pairs[1], both[0] * num_nodes + both[1])
