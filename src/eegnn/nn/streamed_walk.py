"""Walks of which moves alone are kept for the backward pass, see :mod:`eegnn.nn.streamed`: steps of
one size, and those of units that leave where the noise says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import logsigmoid

from eegnn.graph import Adjacency
from eegnn.nn.advance import before, moved
from eegnn.nn.again import (
    Back,
    if_drawn,
    leaves,
    random_state,
    randomly,
    rebound,
    tensors_of,
    weights_of,
)
from eegnn.nn.exit_layer import ExitLayer
from eegnn.nn.exits import Exits
from eegnn.nn.ledger import Ledger
from eegnn.nn.pooling import spread
from eegnn.nn.sas import SASStep
from eegnn.nn.steps import of_layer


def same_steps(
    steps: Sequence[SASStep], h: Tensor, adj: Adjacency, tau: float, limit: int
) -> Tensor:
    """Return the states after so many plain steps of size ``tau``."""
    return _SameSteps.apply(h, adj, steps, tau, limit, *tensors_of(steps))


class _SameSteps(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        h: Tensor,
        adj: Adjacency,
        steps: Sequence[SASStep],
        tau: float,
        limit: int,
        *tensors: Tensor,
    ) -> Tensor:
        moves = []
        for layer in range(limit):
            h, move = moved(of_layer(steps, layer), h, adj, tau)
            moves.append(move)
        ctx.adj, ctx.steps, ctx.tau, ctx.limit = adj, steps, tau, limit
        ctx.save_for_backward(*moves, h, *tensors)
        return h

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, by_h: Tensor) -> tuple[Tensor | None, ...]:
        limit, adj = ctx.limit, ctx.adj
        saved = ctx.saved_tensors
        moves, h, own = saved[:limit], saved[limit], leaves(saved[limit + 1 :])
        steps, back = rebound(ctx.steps, own), Back(own)
        for layer in reversed(range(limit)):
            step = of_layer(steps, layer)
            h = before(step, h, adj, moves[layer])
            by_h, _ = back.plain_step(step, h, adj, ctx.tau, moves[layer], by_h)
        return by_h, None, None, None, None, *back.gradients()


def sampled_walk(
    loop: ExitLayer, h: Tensor, adj: Adjacency, steps: Sequence[SASStep], limit: int, noisy: bool
) -> tuple[Tensor, Exits]:
    """Return the states ``[U, m']`` with which units leave, and the exits.

    Args:
        loop: what is repeated.
        h: initial states ``[n, m']``.
        adj: the graph.
        steps: one bound step, or one for each layer.
        limit: how many steps there are.
        noisy: whether Gumbel noise is drawn.
    """
    given = (*tensors_of(steps), *weights_of([loop.confidence, loop.temperature]))
    found = _SampledWalk.apply(h, loop, adj, steps, limit, noisy, *given)
    taken, cost, layer, time, tau = found
    cost = cost / max(layer.numel() * loop.num_layers, 1)
    return taken, Exits(layer, time, tau, cost, loop.num_layers)


class _SampledWalk(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        h: Tensor,
        loop: ExitLayer,
        adj: Adjacency,
        steps: Sequence[SASStep],
        limit: int,
        noisy: bool,
        *tensors: Tensor,
    ) -> tuple[Tensor, ...]:
        ledger, look = Ledger(loop.num_units(h, adj), limit, h), loop.reader()
        # In double precision: on the way back what was added is subtracted again.
        log_stay, cost = ledger.log_stay.double(), h.new_zeros(())
        moves, randoms = [], []
        for layer in range(limit):
            random = random_state(h)
            decision = loop.judge(*look(h, adj), noisy)
            ledger.decide(layer, decision.leave, decision.units)
            log_stay = log_stay + logsigmoid(decision.score)
            cost += log_stay.exp().sum()
            tau = loop.moving(decision.tau, adj, ledger.left)
            ledger.advance(tau)
            h, move = moved(of_layer(steps, layer), h, adj, _of_rows(loop, tau, adj))
            moves.append(move)
            randoms.append(if_drawn(random, h))
        taken, exits = ledger.close(loop.units(h, adj)), ledger.exits(loop.num_layers)
        ctx.given, ctx.randoms = (loop, adj, steps, limit, noisy), randoms
        ctx.save_for_backward(*moves, h, *tensors, log_stay, exits.layer)
        ctx.mark_non_differentiable(exits.layer, exits.time, exits.tau)
        ctx.set_materialize_grads(False)
        # A view would be of what is kept.
        return taken.clone() if taken is h else taken, cost, exits.layer, exits.time, exits.tau

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, by_taken: Tensor | None, by_cost: Tensor | None, *unused: Any
    ) -> tuple[Tensor | None, ...]:
        loop, adj, steps, limit, noisy = ctx.given
        *saved, log_stay, layer_of = ctx.saved_tensors
        moves, state, tensors = saved[:limit], saved[limit], saved[limit + 1 :]
        bound = len(tensors_of(steps))
        own = leaves(tensors[:bound])
        steps, back = rebound(steps, own), Back([*own, *tensors[bound:]])
        if by_taken is None:
            by_taken = state.new_zeros(layer_of.numel(), state.size(1))
        later = torch.zeros_like(log_stay)  # the gradients of all later log-probabilities
        h = state.detach().requires_grad_()
        with torch.enable_grad():
            by_h = back.through([_left(loop.units(h, adj), by_taken, layer_of == limit)], h)
        for layer in reversed(range(limit)):
            step = of_layer(steps, layer)
            state = before(step, state, adj, moves[layer])
            h = state.detach().requires_grad_()
            with torch.enable_grad(), randomly(ctx.randoms[layer], h):
                decision = loop.decide(h, adj, noisy)
                tau = loop.moving(decision.tau, adj, layer_of <= layer)
                made = back.step(step, h, adj, _of_rows(loop, tau, adj), moves[layer], by_h)
                if by_cost is not None:  # ∂ cost / ∂ S_l = exp(S_l)
                    score = decision.score.detach()
                    later = later + by_cost * log_stay.exp()
                    log_stay = log_stay - logsigmoid(score)
                    made.append((decision.score, (later * (-score).sigmoid()).to(h.dtype)))
                now = layer_of == layer
                if now.any():
                    made.append(_left(decision.units, by_taken, now))
                by_h = back.through(made, h)
        return by_h, None, None, None, None, None, *back.gradients()


def _of_rows(loop: ExitLayer, tau: Tensor, adj: Adjacency) -> Tensor:
    """From τ of units to τ of rows."""
    return spread(tau, adj) if loop.level == "graph" else tau


def _left(units: Tensor, by_taken: Tensor, now: Tensor) -> tuple[Tensor, Tensor]:
    """Those who leave ``now``, and the gradients of what they take."""
    rows = now.nonzero().squeeze(-1)
    return units.index_select(0, rows), by_taken.index_select(0, rows)
