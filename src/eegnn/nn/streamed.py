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
from functools import partial
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
from eegnn.nn.steps import of_layer
from eegnn.nn.streamed_look import Look


@dataclass(frozen=True)
class Layers:
    """What happens between two states. All that is said is in rows, one for each class: with few
    of them a fraction of the time.

    Attributes:
        look: heads and decoder.
        end: from states to what is said where nobody decides any more.
        num_units: from states to how many can leave.
        spread: from τ of units to τ of rows.
        bias: ``[L + 1, C]``, added to what is said, or ``None``.
        steps: one step, or one for each layer.
        adj: the graph.
        limit: how many steps there are.
        freeze: whether nodes stop where one half of them has left.
        mixture: how outputs become one.
    """

    look: Look
    end: Callable[[Tensor], Tensor]
    num_units: Callable[[Tensor], int]
    spread: Callable[[Tensor], Tensor]
    bias: Tensor | None
    steps: Sequence[SASStep]
    adj: Adjacency
    limit: int
    freeze: bool
    mixture: Mixture

    def step(self, layer: int) -> SASStep:
        """The step from this layer to the next."""
        return of_layer(self.steps, layer)

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
        """What the steps were bound to, and the bias."""
        return [*tensors_of(self.steps), *([] if self.bias is None else [self.bias])]

    def with_tensors(self, given: Sequence[Tensor]) -> Layers:
        """The same with other tensors."""
        bias = None if self.bias is None else given[-1]
        return replace(self, steps=rebound(self.steps, given), bias=bias)


def streamed_mixture(
    layers: Layers, h: Tensor, readout: Any, num_layers: int
) -> tuple[Tensor, Exits]:
    """Return the output of the mixture and the exits, of which ``outputs`` has the last alone.

    Args:
        layers: what happens between two states.
        h: initial states ``[n, m']``.
        readout: what ``layers.end`` calls; if it is a module it has parameters.
        num_layers: the budget of which the cost is a share.
    """
    looking = {id(tensor) for tensor in layers.look.tensors}
    ending = [weight for weight in weights_of([readout]) if id(weight) not in looking]
    given = (*layers.tensors(), *layers.look.tensors, *ending)
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
            said, score, tau = layers.look.glance(h)
            goes_on = logsigmoid(score)
            log_weight = log_stay.to(h.dtype) + (goes_on - score)  # log σ(-s) = log σ(s) - s
            total = _added(layers.mixture, total, log_weight, layers.term(layer, said))
            log_stay = log_stay + goes_on
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
        ctx.layers, ctx.randoms = layers, randoms
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
        own, looking = len(ctx.layers.tensors()), len(ctx.layers.look.tensors)
        mine, others = leaves(tensors[:own]), tensors[own:]
        layers, back = ctx.layers.with_tensors(mine), Back([*mine, *others])
        with torch.enable_grad(), randomly(ctx.randoms[limit], state):
            h = state.detach().requires_grad_()
            said = layers.end(h)
            term = layers.term(limit, said)
            by_term, by_weight = _parts(
                mixture, log_stay.to(h.dtype), term.detach(), total, by_total
            )
            by_h = back.through([(layers.output(limit, said).T, by_last), (term, by_term)], h)
        later = by_weight.double()  # the gradients of all later log-weights
        for layer in reversed(range(limit)):
            state = before(layers.step(layer), state, layers.adj, moves[layer])
            with randomly(ctx.randoms[layer], state):
                again = layers.look.again(state, back, others[:looking])
                said, score = again.found.said.detach(), again.found.score.detach()
                if by_cost is not None:  # ∂ cost / ∂ S_l = exp(S_l)
                    later = later + by_cost * log_stay.exp()
                goes_on = logsigmoid(score)
                here, log_stay = log_stay, log_stay - goes_on
                log_weight = log_stay.to(state.dtype) + (goes_on - score)
                with torch.enable_grad():
                    out = said.requires_grad_()
                    term = layers.term(layer, out)
                by_term, by_weight = _parts(mixture, log_weight, term.detach(), total, by_total)
                by_said = back.through([(term, by_term)], out)
                by_score = later * (-score).sigmoid() - by_weight * score.sigmoid()
                onward = partial(_onward, layers, back, layer, here, moves[layer], by_h)
                by_h = again.back(by_said, by_score.to(state.dtype), onward)
            later = later + by_weight
        return None, by_h, *back.gradients()


def _onward(
    layers: Layers,
    back: Back,
    layer: int,
    log_stay: Tensor,
    move: Tensor,
    by_next: Tensor,
    h: Tensor,
    tau: Tensor,
) -> list[tuple[Tensor, Tensor | None]]:
    """Back through the step from a layer to the next: the last two make it ``Onward``."""
    tau = layers.spread(layers.moving(tau, log_stay))
    return back.step(layers.step(layer), h, layers.adj, tau, move, by_next)


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
