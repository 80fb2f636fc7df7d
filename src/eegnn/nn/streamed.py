r"""The mixture of all exits with as much kept for the backward pass as there are states.

Autograd would keep of every exit its output, its weight and what they were made of. Here the
mixture is summed up on the way forward. Kept are the moves :math:`\tau_l\,\Delta\mathbf{H}_l` and
the last states: subtracted one after the other, moves lead back to all states, from which heads and
decoder are computed again, and a step has its gradients without being taken again. Those of the
mixture follow from sums over the later layers. With
:math:`S_l = \sum_{k \le l} \log\sigma(s_k)`, :math:`\log w_l = S_{l-1} + \log\sigma(-s_l)` and
:math:`a_l` the gradient that reaches :math:`\log w_l`, that of the score is

.. math::
    \frac{\partial \ell}{\partial s_l} = \sigma(-s_l) \sum_{k>l} a_k - \sigma(s_l)\,a_l
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
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
from eegnn.nn.exits import Exits
from eegnn.nn.mixture import Mixture
from eegnn.nn.sas import SASStep

#: From states and :attr:`Layers.heads` to what is said ``[C, U]``, the log-odds of continuing and
#: τ ``[U]``.
Decide = Callable[[Tensor, Sequence[Tensor]], tuple[Tensor, Tensor, Tensor]]


@dataclass(frozen=True)
class Layers:
    """What happens between two states. All that is said is in rows, one for each class: with few
    of them a fraction of the time.

    Attributes:
        decide: heads and decoder.
        glance: the same without gradients, faster.
        end: from states to what is said where nobody decides any more.
        num_units: from states to how many can leave.
        spread: from τ of units to τ of rows.
        heads: what ``decide`` and ``glance`` are given besides states: made of parameters once for
            all layers.
        bias: ``[L + 1, C]``, added to what is said, or ``None``.
        steps: one step, or one for each layer.
        adj: the graph.
        limit: how many steps there are.
        freeze: whether nodes stop where one half of them has left.
        mixture: how outputs become one.
    """

    decide: Decide
    glance: Decide
    end: Callable[[Tensor], Tensor]
    num_units: Callable[[Tensor], int]
    spread: Callable[[Tensor], Tensor]
    heads: Sequence[Tensor]
    bias: Tensor | None
    steps: Sequence[SASStep]
    adj: Adjacency
    limit: int
    freeze: bool
    mixture: Mixture

    def step(self, layer: int) -> SASStep:
        """The step from this layer to the next."""
        return self.steps[layer if len(self.steps) > 1 else 0]

    def output(self, layer: int, said: Tensor) -> Tensor:
        """The output at this layer, ``[C, U]``."""
        return said if self.bias is None else said + self.bias[layer].unsqueeze(-1)

    def term(self, layer: int, said: Tensor) -> Tensor:
        """What is averaged of this layer, ``[*, U]``."""
        return self.mixture.encode(self.output(layer, said), 0)

    def moving(self, tau: Tensor, log_stay: Tensor) -> Tensor:
        """τ of units, 0 for who is frozen."""
        return tau.masked_fill(log_stay <= math.log(0.5), 0.0) if self.freeze else tau

    def tensors(self) -> list[Tensor]:
        """What the steps were bound to, the heads and the bias."""
        bias = [] if self.bias is None else [self.bias]
        return [*tensors_of(self.steps), *self.heads, *bias]

    def with_tensors(self, given: Sequence[Tensor]) -> Layers:
        """The same with other tensors."""
        bound = len(tensors_of(self.steps))
        steps, left = rebound(self.steps, given[:bound]), list(given[bound:])
        heads = [left.pop(0) for _ in self.heads]
        bias = None if self.bias is None else left.pop(0)
        return replace(self, steps=steps, heads=heads, bias=bias)


def streamed_mixture(
    layers: Layers, h: Tensor, modules: Sequence[Any], num_layers: int
) -> tuple[Tensor, Exits]:
    """Return the output of the mixture and the exits, of which ``outputs`` has the last alone.

    Args:
        layers: what happens between two states.
        h: initial states ``[n, m']``.
        modules: what ``layers`` calls; those that are modules have parameters.
        num_layers: the budget of which the cost is a share.
    """
    given = (*layers.tensors(), *weights_of(modules))
    out, last, cost, layer, time, tau = _Streamed.apply(layers, h, *given)
    cost = cost / max(layer.numel() * num_layers, 1)
    return out, Exits(layer, time, tau, cost, num_layers, outputs=last.unsqueeze(0))


class _Streamed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, layers: Layers, h: Tensor, *tensors: Tensor) -> tuple[Tensor, ...]:
        number = layers.num_units(h)
        # In double precision: on the way back what was added is subtracted again.
        log_stay = h.new_zeros(number, dtype=torch.float64)
        time, cost = h.new_zeros(number), h.new_zeros(())
        layer_of = torch.zeros(number, dtype=torch.int64, device=h.device)
        moves, randoms, taus, total = [], [], [], None
        for layer in range(layers.limit):
            random = random_state(h)
            said, score, tau = layers.glance(h, layers.heads)
            log_weight = log_stay.to(h.dtype) + logsigmoid(-score)
            total = _added(layers.mixture, total, log_weight, layers.term(layer, said))
            log_stay = log_stay + logsigmoid(score)
            stays = ~(log_stay <= math.log(0.5))  # NaN stays
            cost += log_stay.exp().sum()
            tau = layers.moving(tau, log_stay)
            layer_of += stays
            time += tau.masked_fill(~stays, 0.0)
            taus.append(tau)
            h, move = moved(layers.step(layer), h, layers.adj, layers.spread(tau))
            moves.append(move)
            randoms.append(if_drawn(random, h))
        random = random_state(h)
        said = layers.end(h)
        randoms.append(if_drawn(random, h))
        term = layers.term(layers.limit, said)
        total = _added(layers.mixture, total, log_stay.to(h.dtype), term)
        last = layers.output(layers.limit, said).T
        ctx.layers, ctx.own, ctx.randoms = layers, len(layers.tensors()), randoms
        ctx.save_for_backward(*moves, h, *tensors, log_stay, total)
        tau = torch.stack(taus) if taus else time.new_zeros(0, time.numel())
        ctx.mark_non_differentiable(layer_of, time, tau)
        ctx.set_materialize_grads(False)
        return layers.mixture.decode(total.T), last, cost, layer_of, time, tau

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any,
        by_out: Tensor | None,
        by_last: Tensor | None,
        by_cost: Tensor | None,
        *unused: Any,
    ) -> tuple[Tensor | None, ...]:
        limit, mixture = ctx.layers.limit, ctx.layers.mixture
        *saved, log_stay, total = ctx.saved_tensors
        moves, state, tensors = saved[:limit], saved[limit], saved[limit + 1 :]
        by_total = torch.zeros_like(total)
        if by_out is not None:
            with torch.enable_grad():
                leaf = total.detach().requires_grad_()
                (by_total,) = torch.autograd.grad(mixture.decode(leaf.T), leaf, by_out)
        own = leaves(tensors[: ctx.own])
        layers, back = ctx.layers.with_tensors(own), Back([*own, *tensors[ctx.own :]])
        by_h: Tensor | None = None
        later = torch.zeros_like(log_stay)  # the gradients of all later log-weights
        for layer in reversed(range(limit + 1)):
            if layer < limit:
                state = before(layers.step(layer), state, layers.adj, moves[layer])
            h = state.detach().requires_grad_()
            with torch.enable_grad(), randomly(ctx.randoms[layer], h):
                if layer == limit:
                    said = layers.end(h)
                    out = layers.output(layer, said).T
                    log_weight = log_stay.to(h.dtype)
                    made: list[tuple[Tensor, Tensor | None]] = [(out, by_last)]
                else:
                    said, score, tau = layers.decide(h, layers.heads)
                    s = score.detach()
                    if by_cost is not None:  # ∂ cost / ∂ S_l = exp(S_l)
                        later = later + by_cost * log_stay.exp()
                    tau = layers.spread(layers.moving(tau, log_stay))
                    log_stay = log_stay - logsigmoid(s)
                    log_weight = log_stay.to(h.dtype) + logsigmoid(-s)
                term = layers.term(layer, said)
                by_term, by_weight = _parts(mixture, log_weight, term.detach(), total, by_total)
                if layer < limit:
                    assert by_h is not None
                    by_score = later * (-s).sigmoid() - by_weight * s.sigmoid()
                    given = (layers.step(layer), h, layers.adj, tau, moves[layer], by_h)
                    made = [(score, by_score.to(h.dtype)), *back.step(*given)]
                by_h = back.through([*made, (term, by_term)], h)
            later = later + by_weight
        return None, by_h, *back.gradients()


def _added(mixture: Mixture, total: Tensor | None, log_weight: Tensor, term: Tensor) -> Tensor:
    """The sum with one more exit; terms are ``[*, U]``."""
    if mixture.logarithmic:
        one = log_weight + term
        return one if total is None else torch.logaddexp(total, one)
    one = log_weight.exp() * term
    return one if total is None else total + one


def _parts(
    mixture: Mixture, log_weight: Tensor, term: Tensor, total: Tensor, by_total: Tensor
) -> tuple[Tensor, Tensor]:
    """The gradients that reach the term and the log-weight of one exit, ``[*, U]`` and ``[U]``."""
    if mixture.logarithmic:
        by_term = by_total * (log_weight + term - total).exp()
        return by_term, by_term.sum(dim=0)
    by_term = by_total * log_weight.exp()
    return by_term, (by_term * term).sum(dim=0)
