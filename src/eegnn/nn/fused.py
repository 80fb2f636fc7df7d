"""Evaluation by compiled kernels: what `NodeWalk` and `GraphWalk` do, in a fraction of the passes
over memory.

Of a layer PyTorch computes the products, and :mod:`eegnn.nn.kernels` all that lies between them.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from eegnn.graph import Adjacency
from eegnn.nn import inference
from eegnn.nn.answers import MixtureAnswer, Record, StateAnswer
from eegnn.nn.encoders import Decoder
from eegnn.nn.exits import Exits
from eegnn.nn.sas import DOUBLE_BITS

Array = np.ndarray[Any, Any]
#: Leaving out rows takes the time in which a step computes this share of the others, and this many
#: more.
KEEPING, STARTING = 1 / 8, 512


class FusedWalk(ABC):
    """Units on their way, as in :class:`~eegnn.nn.inference.WholeWalk`.

    Rows of computed units come in two parts: first those whose answer was open when rows were last
    left out, of which there are books, then others that matter to them.

    Args:
        kernels: the module.
        count: how many units there are.
        h: initial states ``[n, m']``, left alone.
        adj: the graph.
        plan: what the units follow.
        answer: what they say when they leave.
        heads: their weights.
        step_size: of each step, instead of τ.
    """

    def __init__(
        self,
        kernels: ModuleType,
        count: int,
        h: Tensor,
        adj: Adjacency,
        plan: inference.Plan,
        answer: StateAnswer,
        heads: inference.Linear,
        step_size: float | None,
    ) -> None:
        self.kernels, self.plan, self.rules, self.answer = kernels, plan, plan.rules, answer
        self.heads = heads
        self.bias, self.nu0 = np.float32(float(heads.bias)), np.float32(heads.nu0)
        self.log_keep = np.float32(math.log1p(-self.rules.leak))
        self.step_size = step_size
        self.mixing = isinstance(answer, MixtureAnswer)
        assert isinstance(answer.readout, Decoder)
        self.decoder = answer.readout
        self.weight = heads.weight
        self.direct = self.mixing and self.decoder.is_linear  # then one product does for all
        if self.direct:
            self.weight = torch.cat([heads.weight, self.decoder.mlp.lins[0].weight])  # type: ignore[list-item]
        # Of rows. What PyTorch multiplies is a tensor, all else is an array.
        scale = adj.degree.clamp(min=1).to(h.dtype).rsqrt_()
        self.scale = scale.numpy()
        self.h = self.scaled = h * scale.unsqueeze(-1)
        self.rowptr, self.col = adj.rowptr, adj.col
        self.buffers = h.new_empty(2, *h.shape)
        self.edge = self._edge_term()
        # Of everyone.
        self.active = self.tried = count
        self.layer = np.full(count, self.rules.limit)
        self.tau = np.zeros((self.rules.limit, count), np.float32)
        self.taken: Array | None = None
        # Of those with books.
        self.names = np.arange(count)
        self.log_stay = np.zeros(count, np.float32)
        self.left = np.zeros(count, np.bool_)
        self.passed: Array | None = None

    def run(self, num_layers: int) -> tuple[Tensor, Exits]:
        """Walk to the end; ``num_layers`` is the budget of which the cost is a share."""
        steps = self.rules.limit
        for layer in range(self.rules.limit):
            tau = self._decide(layer)
            if self.active == 0:
                steps = layer
                break
            if self.step_size is not None:
                tau.fill(self.step_size)
            tau = self._narrow(self.rules.limit - layer, tau)
            if self.rules.freeze and self.active < self.left.size:
                tau[self.left] = 0
            self.advance(layer, tau)
        else:
            self._close()
        assert self.taken is not None
        noted, layers = torch.from_numpy(self.tau[:steps]), torch.from_numpy(self.layer)
        here = noted
        if not self.rules.freeze:
            here = noted.masked_fill(torch.arange(steps).unsqueeze(-1) >= layers, 0.0)
        exits = Exits(
            layer=layers,
            time=here.sum(dim=0),
            tau=noted,
            cost=layers.to(noted.dtype).sum() / max(layers.numel() * num_layers, 1),
            num_layers=num_layers,
        )
        return self.answer.finish(torch.from_numpy(self.taken), layers), exits

    def advance(self, layer: int, tau: Array) -> None:
        """Take a step."""
        index = layer if len(self.plan.steps) > 1 else 0
        omega, weight = self.plan.steps[index].scaled
        inner, around = self.buffers[:, : self.h.size(0)]
        torch.mm(self.h, omega, out=inner)
        bags = embedding_bag(
            self.col, self.scaled, self.rowptr, mode="sum", include_last_offset=True
        )
        torch.mm(bags, weight, out=around)
        if self.edge is not None:
            around += self.edge[index]
        self._move(inner.numpy(), around.numpy(), tau, self.tau[layer])

    @abstractmethod
    def _units(self) -> Tensor:
        """What would be decoded, ``[rows, m']``."""

    @abstractmethod
    def _around(self, others: Array) -> tuple[Array, Array]:
        """What the heads read from neighbours, and the factor that makes a mean of it."""

    @abstractmethod
    def _narrow(self, steps: int, tau: Array) -> Array:
        """Leave out rows that do not matter in the ``steps`` to come, if that pays.

        Returns:
            The step sizes of what is left.
        """

    @abstractmethod
    def _move(self, inner: Array, around: Array, tau: Array, noted: Array) -> None:
        """Change the states, from the products with Ω and W."""

    def _decide(self, layer: int) -> Array:
        """Let the heads look and units leave; return τ of all that are computed."""
        units = self._units()
        facts = self.weight @ units.T
        own, others, cold = facts[:3].numpy()
        around, share = self._around(others)
        tau, books = np.empty_like(own), np.empty((3, self.names.size), np.float32)
        log_next, here, weight = books
        limit = self.rules.log_stay_limit
        self.kernels.decide(
            own.size,
            own,
            around,
            share,
            cold,
            self.bias,
            self.nu0,
            self.rules.sampled,
            tau,
            self.log_stay,
            self.log_keep,
            log_next,
            here,
            weight if limit is not None else weight[:0],  # then the log-odds are all that counts
        )
        if self.rules.stated is not None:
            leaving = self.rules.stated.numpy()[self.names] <= layer
        else:
            leaving = log_next < 0 if limit is None else log_next <= np.float32(limit)
        self._leave(layer, leaving, units, facts, log_next, here, weight)
        return tau

    def _close(self) -> None:
        """Whoever is still here leaves."""
        units, here = self._units(), np.exp(self.log_stay)
        facts, all_of_them = self.weight @ units.T, np.ones(here.size, np.bool_)
        self._leave(self.rules.limit, all_of_them, units, facts, self.log_stay, here, here)

    def _leave(
        self,
        layer: int,
        leaving: Array,
        units: Tensor,
        facts: Tensor,
        log_next: Array,
        here: Array,
        weight: Array,
    ) -> None:
        """Let some leave, ``bool``, and the others pass by."""
        count = self.names.size
        if isinstance(self.answer, Record):
            self.answer.see(units[:count], torch.from_numpy(self.log_stay.copy()))
        said = self._said(layer, units[:count], facts[3:, :count])
        if self.taken is None or self.passed is None:
            width = said.shape[0] if self.mixing else units.size(1)
            self.taken = np.zeros((self.layer.size, width), np.float32)
            self.passed = np.zeros_like(said)
        gone = np.empty(count, np.int64)
        number = self.kernels.leave(
            layer,
            leaving,
            log_next,
            here,
            weight,
            said,
            self.log_stay,
            self.left,
            self.passed,
            self.names,
            gone,
            self.layer,
            self.taken,
        )
        if number and not self.mixing:
            gone = gone[:number]
            self.taken[self.names[gone]] = units.numpy()[gone]
        self.active -= number

    def _said(self, layer: int, units: Tensor, direct: Tensor) -> Array:
        """What these exits say, ``[*, U]``; nothing yet where states are decoded at the end."""
        if not isinstance(self.answer, MixtureAnswer):
            return np.empty((0, units.size(0)), np.float32)
        said = direct if self.direct else self.decoder(units, rows=True)
        return self.answer.shares(said, layer).contiguous().numpy()

    def _pays(self, rows: int) -> bool:
        """Whether to keep so many rows and leave out the others: one step then makes up for it."""
        return self.h.size(0) - rows > KEEPING * rows + STARTING

    def _keep(self, units: Array) -> None:
        """Keep the books of these units alone."""
        assert self.passed is not None
        self.names, self.log_stay = self.names[units], self.log_stay[units]
        self.passed = self.passed[:, units]
        self.left = np.zeros(units.size, np.bool_)

    def _keep_constants(self, rows: Array) -> None:
        """Keep what does not change of these rows alone."""
        self.scale = self.scale[rows]
        if self.edge is not None:
            self.edge = [term.index_select(0, torch.from_numpy(rows)) for term in self.edge]

    def _edge_term(self) -> list[Tensor] | None:
        """The edge terms of the steps, to be added before `scale` is applied."""
        if self.plan.steps[0].edge_term is None:
            return None
        scale = torch.from_numpy(self.scale).unsqueeze(-1) / DOUBLE_BITS
        return [step.edge_term / scale for step in self.plan.steps]


class FusedNodeWalk(FusedWalk):
    """Algorithm 1 without gradients, as :class:`~eegnn.nn.inference.NodeWalk`.

    Nodes keep their names when others are left out: neighbours are read where they have always
    been, so a smaller graph is a copy of some rows of the structure.
    """

    def __init__(self, kernels: ModuleType, h: Tensor, adj: Adjacency, *given: Any) -> None:
        super().__init__(kernels, h.size(0), h, adj, *given)
        self.h = h.clone()
        self.share = np.square(self.scale)
        self.rows = self.names
        self.board = np.zeros(h.size(0), np.float32)

    def _units(self) -> Tensor:
        return self.h

    def _around(self, others: Array) -> tuple[Array, Array]:
        if not self.heads.reads:
            return others, self.share  # all 0
        around = np.empty_like(others)
        self.kernels.add_neighbours(
            self.col.numel(),
            self.rows,
            others,
            self.rowptr.numpy(),
            self.col.numpy(),
            self.board,
            around,
        )
        return around, self.share

    def _narrow(self, steps: int, tau: Array) -> Array:
        if self.rules.freeze:
            if not self._pays(self.active):
                return tau
            rows = active = self._here()
        else:
            if 4 * self.active > 3 * self.tried:
                return tau
            self.tried = self.active
            active = self._here()
            reached = self._reach(active, steps)
            if reached is None:
                return tau
            rows = reached
        rowptr, col = self.rowptr.new_empty(rows.size + 1), torch.empty_like(self.col)
        entries = self.kernels.select_rows(
            self.rowptr.numpy(), self.col.numpy(), rows, rowptr.numpy(), col.numpy()
        )
        self.rowptr, self.col = rowptr, col[:entries]
        self.rows, self.share = self.rows[rows], self.share[rows]
        self.h = self.h.index_select(0, torch.from_numpy(rows))
        self._keep_constants(rows)
        self._keep(active)
        return tau[rows]

    def _here(self) -> Array:
        return np.flatnonzero(~self.left)

    def _reach(self, active: Array, steps: int) -> Array | None:
        """The active rows, then all others from which they are reached in time."""
        inside = np.zeros(self.layer.size, np.bool_)
        inside[self.names[active]] = True
        self.kernels.reach(self.rowptr.numpy(), self.col.numpy(), self.rows, inside, steps - 1)
        others = inside[self.rows]
        others[active] = False
        if not self._pays(active.size + int(others.sum())):
            return None
        return np.concatenate([active, np.flatnonzero(others)])

    def _move(self, inner: Array, around: Array, tau: Array, noted: Array) -> None:
        self.kernels.advance_nodes(
            inner.size,
            self.rows,
            self.h.numpy(),
            inner,
            around,
            self.scale,
            tau,
            self.names.size,
            noted,
            self.scaled.numpy(),
        )
