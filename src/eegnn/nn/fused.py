"""Evaluation by compiled kernels: what `NodeWalk` and `GraphWalk` do, in a fraction of the passes
over memory.

Of each layer :mod:`eegnn.nn.kernels` computes all: two calls, one in which units decide and one in
which those who go on take a step.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from eegnn.graph import Adjacency
from eegnn.nn import inference
from eegnn.nn.answers import MixtureAnswer, Record, StateAnswer
from eegnn.nn.encoders import Decoder
from eegnn.nn.exits import Exits
from eegnn.nn.sas import DOUBLE_BITS
from eegnn.nn.steps import of_layer

Array = np.ndarray[Any, Any]
_KINDS = {"regression": "VALUES", "multilabel": "LABELS", "classification": "CLASSES"}
_UNSURE = {"multilabel": "UNSURE_LABELS", "classification": "UNSURE_CLASSES"}


class FusedWalk(ABC):
    """Units on their way, as in :class:`~eegnn.nn.inference.WholeWalk`.

    All that is known of units and nodes stays where it is; :attr:`units` and :attr:`rows` number
    those that are still computed.

    Args:
        kernels: the module.
        units: their initial states ``[U, m']``.
        h: those of nodes ``[n, m']``, left alone.
        adj: the graph.
        plan: what the units follow.
        answer: what they say when they leave.
        heads: their weights.
        step_size: of each step, instead of τ.
    """

    def __init__(
        self,
        kernels: ModuleType,
        units: Tensor,
        h: Tensor,
        adj: Adjacency,
        plan: inference.Plan,
        answer: StateAnswer,
        heads: inference.Linear,
        step_size: float | None,
    ) -> None:
        self.kernels, self.plan, self.rules, self.answer = kernels, plan, plan.rules, answer
        self.width, self.active = h.size(1), units.size(0)
        self.units = np.arange(self.active)
        assert isinstance(answer.readout, Decoder)
        self.decoder = answer.readout
        self.rule, self.limit, self.stated = self._rule()
        self.mixes = isinstance(answer, MixtureAnswer)
        unsure = (kernels.UNSURE_CLASSES, kernels.UNSURE_LABELS)
        #: Whether what units would say is needed before they leave.
        self.speaks = self.mixes or self.rule in unsure
        self.direct = self.speaks and self.decoder.is_linear
        self.manner = kernels.Manner(
            np.float32(float(heads.bias)),
            np.float32(heads.nu0),
            heads.reads,
            self.rules.sampled,
            np.float32(math.log1p(-self.rules.leak)),
            np.float32(-1 if step_size is None else step_size),
            self.rules.freeze,
            self.mixes,
        )
        self.kind, self.bias, weight = self._speech(heads.weight)
        self.heads = kernels.panels_of(weight.T)
        self.books = self._open_books(units, weight)
        self.tau = np.zeros((self.rules.limit, self.active), np.float32)
        # Neighbours are read on one board while new states are written to the other.
        scale = adj.scale(h.dtype)
        boards = h.new_empty(2, h.size(0), -(-self.width // kernels.COLUMNS) * kernels.COLUMNS)
        torch.mul(h, scale.unsqueeze(-1), out=boards[0, :, : self.width])
        self.read, self.write = boards.numpy()
        self.graph = kernels.Structure(
            adj.rowptr.numpy(),
            adj.col.numpy(),
            scale.numpy(),
            scale.reciprocal().numpy(),
            np.empty((0, self.width), np.float32),
        )
        self.steps = [self._step(step) for step in plan.steps]

    def run(self, num_layers: int) -> tuple[Tensor, Exits]:
        """Walk to the end; ``num_layers`` is the budget of which the cost is a share."""
        steps = self.rules.limit
        for layer in range(self.rules.limit):
            self._decide(layer, self.rule, self.tau[layer])
            if self.active == 0:
                steps = layer
                break
            self._narrow(self.rules.limit - layer)
            self.advance(layer)
        else:
            self._decide(self.rules.limit, self.kernels.EVERYONE, np.empty_like(self.books.tau))
        noted, layers = torch.from_numpy(self.tau[:steps]), torch.from_numpy(self.books.layer)
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
        return self.answer.finish(torch.from_numpy(self.books.answers), layers), exits

    def advance(self, layer: int) -> None:
        """Take a step."""
        graph, omega, weight = of_layer(self.steps, layer)
        self._step_all(self.read, self.write, graph, omega, weight, self.heads, self.books)
        self.read, self.write = self.write, self.read

    @property
    @abstractmethod
    def rows(self) -> int:
        """How many nodes are computed."""

    @abstractmethod
    def _states(self, units: Array) -> Tensor:
        """What would be decoded, ``[u, m']``."""

    @abstractmethod
    def _narrow(self, steps: int) -> None:
        """Leave out what does not matter in the ``steps`` to come."""

    @abstractmethod
    def _step_all(self, *given: Any) -> None:
        """Call the kernel of a step."""

    def _decide(self, layer: int, rule: int, noted: Array) -> None:
        """Let the heads look and units leave; note the step sizes."""
        if isinstance(self.answer, Record):
            self.answer.see(self._states(self.units), torch.from_numpy(self.books.log_stay.copy()))
        elif self.speaks and not self.direct:
            said = self.decoder(self._states(self.units), rows=True)
            self.books.facts[self.units, 3:] = self.answer.shares(said, layer).T.numpy()
        left = self.kernels.decide(
            self.units.size * self.books.facts.shape[1],
            self.units,
            layer,
            rule,
            self.limit,
            self.stated,
            self.manner,
            self.graph,
            self.bias[min(layer, len(self.bias) - 1)],
            self.kind,
            self.books,
            noted,
            self.units.size == self.books.left.size,
        )
        self.active -= left
        if left and not self.mixes:
            gone = self.units[self.books.layer[self.units] == layer]
            self.books.answers[gone] = self._states(gone).numpy()

    def _rule(self) -> tuple[int, Any, Array]:
        """Who leaves: the rule, the limit, and the layers, of which one or none is used."""
        if self.rules.stated is not None:
            return self.kernels.STATED, np.float32(0), self.rules.stated.numpy()
        nobody = np.empty(0, np.int64)
        if self.rules.log_stay_limit is None:
            return self.kernels.ODDS, np.float32(0), nobody
        limit = self.rules.log_stay_limit
        if self.rules.doubting and self.answer.task in _UNSURE:
            rule = getattr(self.kernels, _UNSURE[self.answer.task])
            return rule, np.float32(math.exp(limit)), nobody
        return self.kernels.THRESHOLD, np.float32(limit), nobody

    def _speech(self, heads: Tensor) -> tuple[int, Array, Tensor]:
        """What units say: its kind, its bias ``[*, C]`` at each layer, and what to multiply states
        with, ``[3 + C, m']``, to have it and what the heads say."""
        out = self.decoder.mlp.lins[-1].weight.size(0)  # type: ignore[operator]
        if not self.speaks:  # states, decoded at the end
            return self.kernels.VALUES, np.empty((1, 0), np.float32), heads
        if not self.direct:
            shares = self.answer.shares(heads.new_zeros(out, 1), 0).size(0)
            weight = torch.cat([heads, heads.new_zeros(shares, self.width)])
            return self.kernels.VALUES, np.zeros((1, shares), np.float32), weight
        bias = self.answer.bias
        weight = torch.cat([heads, self.decoder.mlp.lins[0].weight])  # type: ignore[list-item]
        assert self.answer.task is not None
        kind = getattr(self.kernels, _KINDS[self.answer.task])
        return kind, (heads.new_zeros(1, out) if bias is None else bias).numpy(), weight

    def _open_books(self, units: Tensor, weight: Tensor) -> Any:
        count = units.size(0)
        said = self.width
        if self.mixes:
            said = self.bias.shape[1] * (2 if self.kind == self.kernels.LABELS else 1)
        facts = (units @ weight.T).numpy()
        return self.kernels.Books(
            facts,
            facts[:, 1].copy(),
            np.zeros(count, np.bool_),
            np.zeros(count, np.float32),
            np.zeros((count, said), np.float32),
            np.full(count, self.rules.limit),
            np.empty(count, np.float32),
        )

    def _step(self, step: Any) -> tuple[Any, Array, Array]:
        """What kernels need of a step."""
        graph = self.graph
        if step.edge_term is not None:
            graph = graph._replace(edge=(DOUBLE_BITS * step.edge_term).contiguous().numpy())
        return graph, *step.panels(self.kernels)


class FusedNodeWalk(FusedWalk):
    """Algorithm 1 without gradients, as :class:`~eegnn.nn.inference.NodeWalk`."""

    def __init__(self, kernels: ModuleType, h: Tensor, *given: Any) -> None:
        super().__init__(kernels, h, h, *given)
        self.tried = self.active

    @property
    def rows(self) -> int:
        """How many nodes are computed."""
        return self.units.size

    def _states(self, units: Array) -> Tensor:
        states = self.read[units, : self.width] * self.graph.undo[units, None]
        return torch.from_numpy(states)

    def _narrow(self, steps: int) -> None:
        books = self.books
        if self.rules.freeze:
            count = self.kernels.drop(self.units, books.left, self.read, self.write)
            self.units = self.units[:count]
        elif 4 * self.active <= 3 * self.tried:
            self.tried = self.active
            inside = np.zeros(books.left.size, np.bool_)
            inside[self.units] = ~books.left[self.units]
            graph = self.graph
            self.kernels.reach(graph.rowptr, graph.col, self.units, inside, steps - 1)
            self.units = self.units[inside[self.units]]

    def _step_all(self, *given: Any) -> None:
        self.kernels.step_nodes(self.units.size * self.width, self.units, *given)
