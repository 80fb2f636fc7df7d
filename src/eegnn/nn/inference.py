"""Evaluation that leaves out what nobody needs any more."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid, pad, softplus

from eegnn.graph import Adjacency
from eegnn.nn.answers import StateAnswer
from eegnn.nn.exits import Exits
from eegnn.nn.heads import MLP, Confidence, MeanGNN, SASHead, Temperature
from eegnn.nn.sas import SASStep
from eegnn.nn.steps import of_layer

#: Computing a row of a step, with its share of heads and answers, takes the time of this many
#: entries of the sparse product (width 32: 150 ns a row, 2.2 ns an entry).
ROW_WORK = 64
#: Making a smaller graph takes the time of so many steps on it.
BUILD_WORK = 2.0
#: A graph with fewer nodes is not worth making smaller.
SMALLEST = 1024

#: From states to what would be decoded, ``[U, m']``, and to δ = C₀ − C₁ and 1/ν, ``[U]``.
Look = Callable[[Tensor, Adjacency], tuple[Tensor, Tensor, Tensor]]
Head = Callable[[Tensor, Adjacency], Tensor]


class Linear(NamedTuple):
    """Heads of one layer.

    ``weight`` ``[3, m']`` is for δ of a unit, δ of its neighbours and 1/ν, ``bias`` that of δ,
    ``nu0`` is ν₀, and ``reads`` says whether neighbours are read at all.
    """

    weight: Tensor
    bias: Tensor
    nu0: float
    reads: bool


@dataclass(frozen=True)
class Rules:
    """How units leave.

    Attributes:
        limit: steps after which everyone leaves.
        log_stay_limit: a unit leaves once the log-probability of going on falls to this;
            ``None``: once *exit* is more likely than *continue*.
        doubting: that probability is first multiplied by the doubt in the answer of the unit.
        sampled: the probability of continuing is :math:`\\sigma(\\delta)`, else :math:`\\tau`.
        freeze: who left does not move any more.
        local: a step and the heads see no further than the neighbours of a node.
        leak: probability of leaving at a layer whatever the heads say.
        stated: ``int64 [U]``, the layers at which units leave instead.
    """

    limit: int
    log_stay_limit: float | None
    sampled: bool
    freeze: bool
    local: bool
    leak: float = 0.0
    doubting: bool = False
    stated: Tensor | None = None


@dataclass(frozen=True)
class Plan:
    r"""What evaluation follows, whatever holds the states.

    Attributes:
        steps: one bound step, or one for each layer.
        look: the heads, see :func:`reader` and
            :func:`~eegnn.nn.graph_inference.graph_reader`.
        step_sizes: from :math:`\tau` to the step sizes that are used.
        rules: how units leave.
        reach: how many hops the heads see; ``None`` if that is not known.
    """

    steps: Sequence[Any]
    look: Look
    step_sizes: Callable[[Tensor, Adjacency], Tensor]
    rules: Rules
    reach: int | None


class Walk:
    """The books of units on their way: who is here yet, and what those who left took with them.

    The states are given at each layer: those of the units in the books come first.

    Args:
        count: how many units there are.
        like: a tensor whose dtype and device the books take.
        plan: what they follow.
        answer: what they say when they leave.
    """

    def __init__(self, count: int, like: Tensor, plan: Plan, answer: StateAnswer) -> None:
        self.plan, self.rules, self.answer = plan, plan.rules, answer
        # Of those whose answer is still open, the first rows of the states; `units` are their
        # names.
        self.units = torch.arange(count, device=like.device)
        self.left = torch.zeros(count, dtype=torch.bool, device=like.device)
        self.log_stay, self.clock = like.new_zeros(count), like.new_zeros(count)
        self.active = count
        # Of everyone.
        self.layer = torch.full((count,), self.rules.limit, device=like.device)
        self.time = like.new_zeros(count)
        self.taken: Tensor | None = None
        self.tau: list[Tensor] = []

    def decide(self, layer: int, h: Tensor, adj: Adjacency) -> Tensor:
        """Let the heads look and units leave; return τ of all that are computed."""
        count = self.units.numel()
        units, delta, inverse = self.plan.look(h, adj)
        scaled = delta * inverse
        if self.active:
            score = (delta if self.rules.sampled else scaled)[:count]
            self.answer.see(units[:count], self.log_stay)
            self.log_stay = self.log_stay + logsigmoid(score)
            if self.rules.leak:  # σ(s') = (1 − ε) σ(s), see `leaky`
                self.log_stay += math.log1p(-self.rules.leak)
            self._leave((self._wish(score, layer) & ~self.left).nonzero().view(-1), layer)
            if self.active:
                self.answer.pass_by(self.log_stay)
        return self.plan.step_sizes(scaled.sigmoid(), adj)

    def advance(
        self, layer: int, h: Tensor, adj: Adjacency, tau: Tensor, buffer: Tensor | None
    ) -> Tensor:
        """Take a step, in place where possible; return the states."""
        if self.rules.freeze:
            tau = tau.masked_fill(self.left, 0.0)
        self._note(tau[: self.units.numel()])
        tau = self._of_nodes(tau, adj)
        step = of_layer(self.plan.steps, layer)
        if isinstance(step, SASStep):
            step.advance_(h, adj, tau, buffer)
            return h
        return torch.addcmul(h, tau.unsqueeze(-1), step(h, adj))

    def close(self, units: Tensor) -> None:
        """Whoever is still here leaves."""
        self.answer.see(units[: self.units.numel()], self.log_stay)
        self._leave((~self.left).nonzero().view(-1), self.rules.limit)

    def _of_nodes(self, tau: Tensor, adj: Adjacency) -> Tensor:
        """From the step sizes of units to those of rows."""
        return tau

    def _wish(self, score: Tensor, layer: int) -> Tensor:
        """Who wants to leave, ``bool``; ``log_stay`` counts this decision already."""
        if self.rules.stated is not None:
            return self.rules.stated[self.units] <= layer
        if self.rules.log_stay_limit is None:
            return score < 0
        doubt = self.answer.doubt() if self.rules.doubting else None
        return wants_to_leave(self.log_stay, self.rules.log_stay_limit, doubt)

    def _leave(self, rows: Tensor, layer: int) -> None:
        if rows.numel() == 0 and self.taken is not None:
            return
        taken, units = self.answer.take(rows), self.units[rows]
        if self.taken is None:
            self.taken = taken.new_zeros(self.layer.numel(), *taken.shape[1:])
        self.taken[units] = taken
        self.layer[units] = layer
        self.time[units] = self.clock[rows]
        self.left[rows] = True
        self.active -= rows.numel()

    def _note(self, tau: Tensor) -> None:
        self.clock = self.clock + tau
        if tau.numel() < self.layer.numel():
            tau = tau.new_zeros(self.layer.numel()).index_copy_(0, self.units, tau)
        self.tau.append(tau)


class WholeWalk(Walk, ABC):
    """A walk that holds the states of all units itself.

    The same units leave with the same answers as in the plain loop, but states are updated in
    place, the loop ends when all have left, and the graph gets smaller on the way.

    Args:
        count: how many units there are.
        h: initial states ``[n, m']``, left alone.
        adj: the graph.
        plan: what the units follow.
        answer: what they say when they leave.
    """

    def __init__(
        self, count: int, h: Tensor, adj: Adjacency, plan: Plan, answer: StateAnswer
    ) -> None:
        super().__init__(count, h, plan, answer)
        self.h, self.adj = h.clone(), adj
        self.buffer = torch.empty_like(h)
        self.tried = self.active

    def run(self, num_layers: int) -> tuple[Tensor, Exits]:
        """Walk to the end; ``num_layers`` is the budget of which the cost is a share."""
        for layer in range(self.rules.limit):
            tau = self.decide(layer, self.h, self.adj)
            if self.active == 0:
                break
            if 4 * self.active <= 3 * self.tried:
                self.tried = self.active
                tau = self._narrow(self.rules.limit - layer, tau)
            self.h = self.advance(layer, self.h, self.adj, tau, self.buffer)
        else:
            self.close(self._units())
        assert self.taken is not None
        n = self.layer.numel()
        exits = Exits(
            layer=self.layer,
            time=self.time,
            tau=torch.stack(self.tau) if self.tau else self.time.new_zeros(0, n),
            cost=self.layer.to(self.time.dtype).sum() / max(n * num_layers, 1),
            num_layers=num_layers,
        )
        return self.answer.finish(self.taken, self.layer), exits

    def _units(self) -> Tensor:
        """What would be decoded."""
        return self.h

    @abstractmethod
    def _narrow(self, steps: int, tau: Tensor) -> Tensor:
        """Leave out rows that do not matter in the ``steps`` to come, if that pays.

        Returns:
            The step sizes of what is left.
        """

    def _keep(self, active: Tensor) -> None:
        """Keep the books of these units alone, ``int64``."""
        self.units, self.clock = self.units[active], self.clock[active]
        self.left, self.log_stay = self.left[active], self.log_stay[active]
        self.answer.keep(active)


class NodeWalk(WholeWalk):
    r"""Algorithm 1 without gradients, doing less.

    * Frozen nodes are not computed: the graph shrinks to the active nodes and, to be read, their
      neighbours.
    * Evolving nodes are not computed once no active node can be reached from them in the steps
      that remain: with :math:`k` steps to come after this one, only nodes within :math:`k` hops
      of an active one matter.
    * Answers are decoded for the nodes that were active when the graph last shrank.

    A smaller graph has to be made first, which takes the time of a few steps on it, so that is
    done when it pays: :meth:`_worth`.

    Args:
        h, adj, plan, answer: see :class:`WholeWalk`.
    """

    def __init__(self, h: Tensor, adj: Adjacency, plan: Plan, answer: StateAnswer) -> None:
        super().__init__(h.size(0), h, adj, plan, answer)

    def _narrow(self, steps: int, tau: Tensor) -> Tensor:
        if not self.rules.local or self.adj.inner < SMALLEST:
            return tau
        active = (~self.left).nonzero().view(-1)
        rows = active if self.rules.freeze else self._reach(active, steps)
        if rows is None or not self._worth(rows, steps):
            return tau
        self.adj, order = self.adj.around(rows)
        self.h, tau = self.h.index_select(0, order), tau[rows]  # h[order]: seven times as long
        self._keep(active)
        return tau

    def _reach(self, active: Tensor, steps: int) -> Tensor | None:
        """The active rows, then all others from which they are reached in time."""
        inside = self.h.new_zeros(self.adj.num_nodes, 1)
        inside[active] = 1
        size = active.numel()
        for _ in range(steps - 1):
            rows = inside[: self.adj.inner, 0].nonzero().view(-1)
            if not self._worth(rows, steps):
                return None
            inside = (inside + self.adj.propagate(inside, "sum")).clamp_(max=1)
            grown = int(inside[: self.adj.inner].sum())
            if grown == size:
                break
            size = grown
        inside[active] = 0
        return torch.cat([active, inside[: self.adj.inner, 0].nonzero().view(-1)])

    def _worth(self, rows: Tensor, steps: int) -> bool:
        """Whether computing only these rows saves more than making the smaller graph takes."""
        now = self.adj.num_edges + ROW_WORK * self.adj.inner
        then = int(self.adj.degree[rows].sum()) + ROW_WORK * rows.numel()
        return steps * (now - then) > BUILD_WORK * then


def wants_to_leave(log_stay: Tensor, limit: float, doubt: Tensor | None) -> Tensor:
    """Whether the probability of going on, times the doubt, falls to a limit; both in logarithms.

    All of it is ``[U]``; with ``doubt=None`` there is nothing to multiply with.
    """
    if doubt is None:
        return log_stay <= limit
    return log_stay.exp() * doubt <= math.exp(limit)


def reader(
    confidence: Head, temperature: Head, scale: Callable[[Tensor], Tensor] | None = None
) -> Look:
    r"""Return what gives the states of nodes with :math:`\delta = C_0 - C_1` and :math:`1/\nu`.

    Heads of one layer, the default, become a single product with the states: :math:`\delta` needs
    no more than the difference of two rows of weights, and one number for each node is propagated
    instead of two.

    Args:
        confidence, temperature: the heads.
        scale: applied to the states before.
    """

    @cache
    def linear() -> Linear | None:  # when first needed
        found = linear_heads(confidence, temperature)
        if found is None or not found.reads:
            return None
        # Four rows take two thirds of the time of three.
        return found._replace(weight=pad(found.weight, (0, 0, 0, 1)))

    def look(h: Tensor, adj: Adjacency) -> tuple[Tensor, Tensor, Tensor]:
        seen, inner = h if scale is None else scale(h), adj.inner
        heads = linear()
        if heads is None:
            c = confidence(seen, adj)[:inner]
            return h, c[:, 0] - c[:, 1], temperature(seen, adj)[:inner]
        own, others, cold, _ = heads.weight @ seen.T
        around = adj.propagate(others.unsqueeze(-1), "mean").squeeze(-1)
        delta = own[:inner] + around[:inner] + heads.bias
        return h, delta, softplus(cold[:inner]) + heads.nu0

    return look


def nobody_leaves(h: Tensor, adj: Adjacency) -> tuple[Tensor, Tensor, Tensor]:
    """The heads of a model without exits: everyone surely continues."""
    count = adj.inner
    return h, h.new_full((count,), torch.inf), h.new_ones(count)


def hops(head: Any) -> int | None:
    """How far a head sees; ``None`` if that is not known."""
    if isinstance(head, Confidence | Temperature):
        return hops(head.head)
    if isinstance(head, MeanGNN):
        return len(head.lins)
    if isinstance(head, SASHead):
        return head.num_layers
    return 0 if isinstance(head, MLP) else None


def linear_heads(confidence: Any, temperature: Any) -> Linear | None:
    """The weights of heads of one layer, the default; ``None`` for others."""
    if not (isinstance(confidence, Confidence) and isinstance(temperature, Temperature)):
        return None
    first, second = confidence.head, temperature.head
    if not (isinstance(first, MeanGNN | MLP) and isinstance(second, MLP)):
        return None
    if len(first.lins) > 1 or len(second.lins) > 1 or second.lins[0].bias is not None:
        return None
    weight, bias = first.lins[0].weight, first.lins[0].bias
    delta, reads = weight[0] - weight[1], isinstance(first, MeanGNN)
    own, others = delta.chunk(2) if reads else (delta, torch.zeros_like(delta))
    rows = torch.stack([own, others, second.lins[0].weight[0]])
    return Linear(rows, bias[0] - bias[1], temperature.nu0, reads)
