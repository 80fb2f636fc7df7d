"""Evaluation of graphs that drops those which have left."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor
from torch.nn.functional import softplus

from eegnn.graph import Adjacency
from eegnn.nn.answers import StateAnswer
from eegnn.nn.inference import Head, Look, Plan, WholeWalk, linear_heads
from eegnn.nn.pooling import POOLS, said_of_graphs, spread, weighted_sum


class GraphWalk(WholeWalk):
    """Algorithm 2 without gradients, doing less: graphs that have left are dropped.

    Args:
        h, adj, plan, answer: see :class:`WholeWalk`.
        pool: name of what is decoded, one of :data:`~eegnn.nn.pooling.POOLS`.
    """

    def __init__(
        self, h: Tensor, adj: Adjacency, plan: Plan, answer: StateAnswer, pool: str
    ) -> None:
        super().__init__(adj.num_graphs, h, adj, plan, answer)
        self.pool = POOLS[pool]

    def _units(self) -> Tensor:
        return self.pool(self.h, self.adj)

    def _of_nodes(self, tau: Tensor, adj: Adjacency) -> Tensor:
        return spread(tau, adj)

    def _narrow(self, steps: int, tau: Tensor) -> Tensor:
        stays = ~self.left
        active = stays.nonzero().view(-1)
        self.adj, rows = self.adj.select_graphs(stays)
        self.h = self.h.index_select(0, rows)
        self._keep(active)
        return tau[active]


def graph_reader(
    confidence: Head,
    temperature: Head,
    pool: str,
    scale: Callable[[Tensor], Tensor] | None = None,
) -> Look:
    r"""Return what gives pooled states with :math:`\delta` and :math:`1/\nu`, for graphs.

    A head that reads neighbours looks at the nodes, and what it says is averaged over them. Of the
    default heads, which are linear, that average is what they say of two sums over the nodes of a
    graph: nothing has to be propagated.

    Args:
        confidence, temperature: the heads.
        pool: name of what is decoded, one of :data:`~eegnn.nn.pooling.POOLS`.
        scale: applied before heads to what they look at.
    """
    linear = linear_heads(confidence, temperature) if scale is None else None

    def look(h: Tensor, adj: Adjacency) -> tuple[Tensor, Tensor, Tensor]:
        units = POOLS[pool](h, adj)
        if linear is None or not linear.reads:
            nodes, pooled = (h, units) if scale is None else (scale(h), scale(units))
            c = said_of_graphs(confidence, nodes, pooled, adj)
            return units, c[:, 0] - c[:, 1], said_of_graphs(temperature, nodes, pooled, adj)
        own, others, inner = linear.weight
        mean = units if pool == "mean" else POOLS["mean"](h, adj)
        around = weighted_sum(h, adj, adj.mean_shares(h.dtype))
        bias = linear.bias * adj.ptr.diff().clamp(max=1)  # nobody speaks for one without nodes
        return units, mean @ own + around @ others + bias, softplus(units @ inner) + linear.nu0

    return look
