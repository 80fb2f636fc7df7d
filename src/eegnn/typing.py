"""Names that many files share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from torch import Tensor

from eegnn.graph import Adjacency

#: What is predicted, and what leaves: a node, a graph, or a pair of nodes.
Level = Literal["node", "graph", "edge"]
#: What a node that has left does: it goes on evolving, or keeps its state.
AfterExit = Literal["evolve", "freeze"]
#: What labels are.
Task = Literal["classification", "multilabel", "regression"]
#: From states ``[n, m']`` to their change ``[n, m']``.
Step = Callable[[Tensor, Adjacency], Tensor]
#: From states to logits ``[U, 2]``, or to inverse temperatures ``[U]``.
Head = Callable[[Tensor, Adjacency], Tensor]
#: From states ``[U, m']`` to predictions ``[U, C]``.
Readout = Callable[[Tensor], Tensor]
