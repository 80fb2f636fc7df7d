"""Training without sampling: the exact mixture over all exits."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from eegnn.graph import Adjacency
from eegnn.nn.again import can_stream
from eegnn.nn.answers import Readout
from eegnn.nn.compiled import kernels_for
from eegnn.nn.encoders import Decoder
from eegnn.nn.exit_layer import ExitLayer
from eegnn.nn.exits import Exits
from eegnn.nn.inference import Linear, linear_heads
from eegnn.nn.look import Eyes, watched
from eegnn.nn.mixture import MIXTURES, exit_log_probabilities, leaky, mixed_exits
from eegnn.nn.pooling import spread
from eegnn.nn.streamed import Layers, streamed_mixture
from eegnn.nn.streamed_look import ByAutograd, ByKernels, Look, Said


class Mixed:
    """One forward pass in training.

    Args:
        loop: what is repeated.
        adj: the graph.
        steps: one bound step, or one for each layer.
        readout: the decoder.
        bias: ``[L + 1, C]``, added to what the decoder says at each layer.
        limit: how many steps there are.
    """

    def __init__(
        self,
        loop: ExitLayer,
        adj: Adjacency,
        steps: Sequence[Any],
        readout: Readout,
        bias: Tensor | None,
        limit: int,
    ) -> None:
        self.loop, self.adj, self.steps = loop, adj, steps
        self.readout, self.bias, self.limit = readout, bias, limit
        self.freezing = loop.level == "node" and loop.after_exit == "freeze"

    def run(self, h: Tensor) -> tuple[Tensor, Exits]:
        """From initial states ``[n, m']`` to the output of the mixture, and the exits.

        Who would have left matters to nobody but frozen nodes, so the books are kept for all layers
        at once: less to do on small graphs.
        """
        loop = self.loop
        parts = (loop.confidence, loop.temperature, self.readout)
        if loop.recompute and loop.objective == "expected" and can_stream(self.steps, parts, h):
            return self._streamed(h)
        dim, outputs, score, tau = self._all_exits(h)
        exits = mixed_exits(score, tau.detach(), loop.num_layers)
        log_weight = exit_log_probabilities(score)
        out = MIXTURES[loop.task].mean(log_weight, outputs, dim)
        outputs = outputs.transpose(1, 2) if dim == 1 else outputs
        return out, dataclasses.replace(exits, outputs=outputs, log_weight=log_weight)

    def _all_exits(self, h: Tensor) -> tuple[int, Tensor, Tensor, Tensor]:
        """The dimension of classes in what is said at each layer, ``[L + 1, U, C]`` or, with 1,
        ``[L + 1, C, U]``; that, and for each step ``[steps, U]`` the scores and τ."""
        if not self.loop.recompute and not self._can_wait(h) and self._has_kernels(h):
            outputs, score, tau = self._by_kernels(h)
            return 1, outputs, score, tau
        units, score, tau = self._at_once(h) if self._can_wait(h) else self._one_by_one(h)
        if self.loop.recompute:
            outputs = torch.stack([self.loop.keep(self.readout, one) for one in units])
        else:
            outputs = _decoded(self.readout, units)
        return -1, shifted(outputs, self.bias), score, tau

    def _one_by_one(self, h: Tensor) -> tuple[list[Tensor], Tensor, Tensor]:
        """What is decoded at each layer, and for each step ``[steps, U]`` the scores and τ."""
        loop, adj = self.loop, self.adj
        log_stay = h.new_zeros(loop.num_units(h, adj))
        units, scores, taus = [], [], []
        for layer in range(self.limit):
            decision = loop.keep(loop.decide, h, adj, False)
            units.append(decision.units)
            scores.append(decision.score)
            tau = loop.step_sizes(decision.tau, adj)
            taus.append(self._moving(tau, decision.score, log_stay))
            h = loop.advance(h, adj, self.steps, layer, taus[-1])
        units.append(loop.units(h, adj))
        return units, stacked(scores, log_stay), stacked(taus, log_stay)

    def _can_wait(self, h: Tensor) -> bool:
        """Whether no decision changes a state, and all of them can be made together."""
        loop = self.loop
        return (
            self.limit > 0
            and loop.level == "node"
            and loop.after_exit == "evolve"
            and not isinstance(loop.step_size, str)
            and not loop.recompute
            and _small(h)
            and all(getattr(head, "stacks", False) for head in (loop.confidence, loop.temperature))
        )

    def _at_once(self, h: Tensor) -> tuple[list[Tensor], Tensor, Tensor]:
        """:meth:`_one_by_one` where they can wait: a quarter less time for a small graph."""
        tau = h.new_full((h.size(0),), float(self.loop.step_size))
        units = [h]
        for layer in range(self.limit):
            h = self.loop.advance(h, self.adj, self.steps, layer, tau)
            units.append(h)
        decision = self.loop.decide(torch.stack(units[:-1]), self.adj, noisy=False)
        return units, decision.score, tau.expand(self.limit, -1)

    def _has_kernels(self, h: Tensor) -> bool:
        """Whether the kernels can look for the heads and the decoder."""
        loop, readout = self.loop, self.readout
        return (
            isinstance(readout, Decoder)
            and readout.is_linear
            and loop.level == "node"
            and not loop.head_norm
            and h.numel() > 0
            and kernels_for(h) is not None
            and not torch.is_autocast_enabled(h.device.type)
            and self._linear is not None
            and not watched(loop.confidence, loop.temperature, readout)  # type: ignore[arg-type]
        )

    def _by_kernels(self, h: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """What is said at each layer, ``[L + 1, C, n]``, and for each step the scores and τ."""
        log_stay, eyes = h.new_zeros(h.size(0)), self._eyes()
        said, scores, taus = [], [], []
        for layer in range(self.limit):
            seen = eyes.look(h)
            score, tau = self._scores(seen.delta, seen.inverse)
            said.append(seen.said)
            scores.append(score)
            taus.append(self._moving(tau, score, log_stay))
            h = self.loop.advance(h, self.adj, self.steps, layer, taus[-1])
        said.append(self._in_rows(h))
        outputs = torch.stack(said)
        if self.bias is not None:
            outputs = outputs + self.bias[: outputs.size(0)].unsqueeze(-1)
        return outputs, stacked(scores, log_stay), stacked(taus, log_stay)

    def _moving(self, tau: Tensor, score: Tensor, log_stay: Tensor) -> Tensor:
        """τ, 0 for who is frozen by now; ``log_stay`` is of before, and is brought up to date."""
        if not self.freezing:
            return tau
        log_stay += logsigmoid(score.detach())
        return tau.masked_fill(log_stay <= math.log(0.5), 0.0)

    def _scores(self, delta: Tensor, inverse: Tensor) -> tuple[Tensor, Tensor]:
        """From δ and 1/ν to the log-odds of continuing and the step sizes."""
        scaled = delta * inverse
        tau = self.loop.step_sizes(scaled.sigmoid(), self.adj)
        return leaky(scaled, self.loop.leak_by_layer), tau

    def _streamed(self, h: Tensor) -> tuple[Tensor, Exits]:
        """Keep no more than states for the backward pass."""
        loop, adj = self.loop, self.adj
        look = self._by_autograd()
        if self._has_kernels(h) and self._is_known(h):
            fixed = None if loop.step_size == "adaptive" else float(loop.step_size)
            look = ByKernels(self._eyes(), loop.leak_by_layer, fixed)
        layers = Layers(
            look=look,
            end=lambda h: self._in_rows(loop.units(h, adj)),
            num_units=lambda h: loop.num_units(h, adj),
            spread=lambda tau: spread(tau, adj) if loop.level == "graph" else tau,
            bias=self.bias,
            steps=self.steps,
            adj=adj,
            limit=self.limit,
            freeze=self.freezing,
            mixture=MIXTURES[loop.task],
        )
        return streamed_mixture(layers, h, self.readout, loop.num_layers)

    def _is_known(self, h: Tensor) -> bool:
        """Whether all between two states has gradients in closed form."""
        return self.loop.step_size != "mean" and all(step.is_plain(h) for step in self.steps)

    def _by_autograd(self) -> Look:
        """Heads and decoder, with gradients and, faster, without."""
        loop, adj, reader = self.loop, self.adj, self.loop.reader()

        def decide(h: Tensor) -> Said:
            decision = loop.decide(h, adj, False)
            tau = loop.step_sizes(decision.tau, adj)
            return Said(self._in_rows(decision.units), decision.score, tau)

        def glance(h: Tensor) -> Said:
            units, delta, inverse = reader(h, adj)
            return Said(self._in_rows(units), *self._scores(delta, inverse))

        return ByAutograd(decide, glance, (loop.confidence, loop.temperature, self.readout))

    @cached_property
    def _linear(self) -> Linear | None:
        """Heads of one layer, made of their parameters once for all layers."""
        return linear_heads(self.loop.confidence, self.loop.temperature)

    def _eyes(self) -> Eyes:
        """Heads and decoder for the kernels."""
        assert self._linear is not None
        assert isinstance(self.readout, Decoder)
        return Eyes(self.adj, self._linear, self.readout)

    def _in_rows(self, units: Tensor) -> Tensor:
        """What is decoded, ``[C, U]``."""
        if isinstance(self.readout, Decoder):
            return self.readout(units, rows=True)
        return self.readout(units).T


def shifted(outputs: Tensor, bias: Tensor | None) -> Tensor:
    """Outputs ``[layers, U, C]``, each with the bias of its layer."""
    return outputs if bias is None else outputs + bias[: outputs.size(0)].unsqueeze(1)


def stacked(rows: list[Tensor], like: Tensor) -> Tensor:
    """``[steps, U]``, also when no step was taken; ``like`` is ``[U]``."""
    return torch.stack(rows) if rows else like.new_zeros(0, like.numel())


def _decoded(readout: Readout, units: list[Tensor]) -> Tensor:
    """Decode ``[U, m']`` of every layer: small ones together, large ones while in the cache."""
    if _small(units[0]):
        return readout(torch.stack(units))
    return torch.stack([readout(states) for states in units])


def _small(states: Tensor) -> bool:
    """Whether the states of all layers are better treated together: they fit into the cache."""
    return states.numel() <= 2**16
