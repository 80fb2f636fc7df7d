r"""The mixture of all exits with the states alone kept for the backward pass.

Autograd would keep of every exit its output, its weight and what they were made of. Here the
mixture is summed up on the way forward; on the way back each layer is computed again from its
state, and the gradients of the mixture follow from sums over the later layers. With
:math:`S_l = \sum_{k \le l} \log\sigma(s_k)`, :math:`\log w_l = S_{l-1} + \log\sigma(-s_l)` and
:math:`a_l` the gradient that reaches :math:`\log w_l`, that of the score is

.. math::
    \frac{\partial \ell}{\partial s_l} = \sigma(-s_l) \sum_{k>l} a_k - \sigma(s_l)\,a_l
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.functional import logsigmoid
from torch.utils.checkpoint import get_device_states, set_device_states

from eegnn.graph import Adjacency
from eegnn.nn.advance import advanced, step_gradients
from eegnn.nn.encoders import Decoder
from eegnn.nn.exits import Exits
from eegnn.nn.mixture import Mixture
from eegnn.nn.sas import SASStep

#: From states to what would be decoded, ``[U, m']``, the log-odds of continuing and τ, ``[U]``.
Decide = Callable[[Tensor], tuple[Tensor, Tensor, Tensor]]


@dataclass(frozen=True)
class Layers:
    """What happens between two states.

    Attributes:
        decide: the heads.
        glance: the same without gradients, faster.
        units: from states to what would be decoded, where nobody decides any more.
        spread: from τ of units to τ of rows.
        readout: the decoder.
        bias: ``[L + 1, C]``, added to what is decoded, or ``None``.
        steps: one step, or one for each layer.
        adj: the graph.
        limit: how many steps there are.
        freeze: whether nodes stop where one half of them has left.
        mixture: how outputs become one.
    """

    decide: Decide
    glance: Decide
    units: Callable[[Tensor], Tensor]
    spread: Callable[[Tensor], Tensor]
    readout: Callable[[Tensor], Tensor]
    bias: Tensor | None
    steps: Sequence[SASStep]
    adj: Adjacency
    limit: int
    freeze: bool
    mixture: Mixture

    def step(self, layer: int) -> SASStep:
        """The step from this layer to the next."""
        return self.steps[layer if len(self.steps) > 1 else 0]

    def said(self, layer: int, units: Tensor) -> tuple[Tensor, Tensor]:
        """The output at this layer, and what is averaged of it."""
        out = self.readout(units)
        if self.bias is not None:
            out = out + self.bias[layer]
        return out, self.mixture.encode(out, -1)

    def spoken(self, layer: int, units: Tensor) -> Tensor:
        """What is averaged of this layer, ``[*, U]``: with few classes a fraction of the time."""
        if isinstance(self.readout, Decoder):
            out = self.readout(units, rows=True)
        else:
            out = self.readout(units).T
        if self.bias is not None:
            out = out + self.bias[layer].unsqueeze(-1)
        return self.mixture.encode(out, 0)

    def moving(self, tau: Tensor, log_stay: Tensor) -> Tensor:
        """τ of units, 0 for who is frozen."""
        return tau.masked_fill(log_stay <= math.log(0.5), 0.0) if self.freeze else tau

    def tensors(self) -> list[Tensor]:
        """What the steps were bound to, and the bias."""
        bound = [t for step in self.steps for t in (step.omega, step.weight, step.edge_term)]
        return [t for t in (*bound, self.bias) if t is not None]

    def with_tensors(self, given: Sequence[Tensor]) -> Layers:
        """The same with other tensors."""
        left, steps = list(given), []
        for step in self.steps:
            other = copy.copy(step)
            other.omega, other.weight = left.pop(0), left.pop(0)
            if step.edge_term is not None:
                other.edge_term = left.pop(0)
            steps.append(other)
        bias = None if self.bias is None else left.pop(0)
        return replace(self, steps=steps, bias=bias)


def streamed_mixture(
    layers: Layers, h: Tensor, modules: Sequence[Any], num_layers: int
) -> tuple[Tensor, Exits]:
    """Return the output of the mixture and the exits, of which ``outputs`` has the last alone.

    Args:
        layers: what happens between two states.
        h: initial states ``[n, m']``.
        modules: what ``layers`` calls, heads and decoder; those that are modules have parameters.
        num_layers: the budget of which the cost is a share.
    """
    inside = [m for m in modules if isinstance(m, nn.Module)]
    weights = [p for m in inside for p in m.parameters() if p.requires_grad]
    out, last, cost, layer, time, tau = _Streamed.apply(layers, h, *layers.tensors(), *weights)
    cost = cost / max(layer.numel() * num_layers, 1)
    return out, Exits(layer, time, tau, cost, num_layers, outputs=last.unsqueeze(0))


class _Streamed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, layers: Layers, h: Tensor, *tensors: Tensor) -> tuple[Tensor, ...]:
        given = h
        units = layers.units(h)
        # In double precision: on the way back what was added is subtracted again.
        log_stay = units.new_zeros(units.size(0), dtype=torch.float64)
        time, cost = units.new_zeros(units.size(0)), units.new_zeros(())
        layer_of = torch.zeros(units.size(0), dtype=torch.int64, device=units.device)
        states, randoms, taus, total = [h], [], [], None
        for layer in range(layers.limit):
            randoms.append(_random_state(h))
            units, score, tau = layers.glance(h)
            log_weight = log_stay.to(h.dtype) + logsigmoid(-score)
            total = _added(layers.mixture, total, log_weight, layers.spoken(layer, units))
            log_stay = log_stay + logsigmoid(score)
            stays = ~(log_stay <= math.log(0.5))  # NaN stays
            cost += log_stay.exp().sum()
            tau = layers.moving(tau, log_stay)
            layer_of += stays
            time += tau.masked_fill(~stays, 0.0)
            taus.append(tau)
            h = advanced(layers.step(layer), h, layers.adj, layers.spread(tau))
            states.append(h)
        randoms.append(_random_state(h))
        last, term = layers.said(layers.limit, layers.units(h))
        total = _added(layers.mixture, total, log_stay.to(h.dtype), term.T).T.contiguous()
        ctx.layers, ctx.randoms = layers, randoms
        ctx.save_for_backward(given, *states[1:], *tensors, log_stay, total)
        tau = torch.stack(taus) if taus else time.new_zeros(0, time.numel())
        ctx.mark_non_differentiable(layer_of, time, tau)
        ctx.set_materialize_grads(False)
        return layers.mixture.decode(total), last, cost, layer_of, time, tau

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
        states, tensors = saved[: limit + 1], saved[limit + 1 :]
        by_total = torch.zeros_like(total)
        if by_out is not None:
            with torch.enable_grad():
                leaf = total.detach().requires_grad_()
                (by_total,) = torch.autograd.grad(mixture.decode(leaf), leaf, by_out)
        back = _Back(ctx.layers, tensors)
        by_h: Tensor | None = None
        later = torch.zeros_like(log_stay)  # the gradients of all later log-weights
        for layer in reversed(range(limit + 1)):
            h = states[layer].detach().requires_grad_()
            with torch.enable_grad(), _randomly(ctx.randoms[layer], h):
                if layer == limit:
                    out, term = back.layers.said(layer, back.layers.units(h))
                    log_weight = log_stay.to(h.dtype)
                    made: list[tuple[Tensor, Tensor | None]] = [(out, by_last)]
                else:
                    units, score, tau = back.layers.decide(h)
                    term = back.layers.said(layer, units)[1]
                    s = score.detach()
                    if by_cost is not None:  # ∂ cost / ∂ S_l = exp(S_l)
                        later = later + by_cost * log_stay.exp()
                    tau = back.layers.spread(back.layers.moving(tau, log_stay))
                    log_stay = log_stay - logsigmoid(s)
                    log_weight = log_stay.to(h.dtype) + logsigmoid(-s)
                by_term, by_weight = _parts(mixture, log_weight, term.detach(), total, by_total)
                if layer < limit:
                    assert by_h is not None
                    by_score = later * (-s).sigmoid() - by_weight * s.sigmoid()
                    made = [(score, by_score.to(h.dtype)), *back.step(layer, h, tau, by_h)]
                by_h = back.through([*made, (term, by_term)], h)
            later = later + by_weight
        return None, by_h, *back.gradients()


class _Back:
    """Gradients on the way back, added up.

    Args:
        layers: what happens between two states.
        tensors: its own, and the weights that it uses.
    """

    def __init__(self, layers: Layers, tensors: Sequence[Tensor]) -> None:
        bound = len(layers.tensors())
        leaves = [t.detach().requires_grad_(t.requires_grad) for t in tensors[:bound]]
        self.layers = layers.with_tensors(leaves)
        self.tensors = [*leaves, *tensors[bound:]]
        self.wanted = [t for t in self.tensors if t.requires_grad]
        self.sums: dict[int, Tensor] = {}
        self.by_h: Tensor | None = None

    def step(
        self, layer: int, h: Tensor, tau: Tensor, by_next: Tensor
    ) -> list[tuple[Tensor, Tensor | None]]:
        """Go back through a step: what autograd is to go on with, and the gradients of that."""
        step, adj = self.layers.step(layer), self.layers.adj
        if not step.is_plain(h):
            moved = torch.addcmul(h, tau.unsqueeze(-1), step(h, adj).to(h.dtype))
            return [(moved, by_next)]
        given = (step.omega, step.weight, step.edge_term)
        with torch.no_grad():
            self.by_h, *found, by_tau = step_gradients(step, h, adj, tau, by_next)
        for tensor, gradient in zip(given, found, strict=True):
            if tensor is not None and tensor.requires_grad:
                self._add(tensor, gradient)
        return [(tau, by_tau)]

    def through(self, made: Sequence[tuple[Tensor, Tensor | None]], h: Tensor) -> Tensor:
        """Go back to the states ``h`` from what was made of them; return their gradient."""
        pairs = [(m, g) for m, g in made if m.requires_grad and g is not None]
        by_h, *found = torch.autograd.grad(
            [m for m, _ in pairs], [h, *self.wanted], [g for _, g in pairs], allow_unused=True
        )
        for tensor, gradient in zip(self.wanted, found, strict=True):
            self._add(tensor, gradient)
        if self.by_h is not None:
            by_h, self.by_h = self.by_h.add_(by_h), None
        return by_h

    def gradients(self) -> list[Tensor | None]:
        """Of all tensors."""
        return [self.sums.get(id(tensor)) for tensor in self.tensors]

    def _add(self, tensor: Tensor, gradient: Tensor | None) -> None:
        if gradient is None:
            return
        if id(tensor) in self.sums:
            self.sums[id(tensor)] += gradient
        else:
            self.sums[id(tensor)] = gradient


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
    """The gradients that reach the term and the log-weight of one exit, ``[U, *]`` and ``[U]``."""
    weight = log_weight.unsqueeze(-1)
    if mixture.logarithmic:
        by_term = by_total * (weight + term - total).exp()
        return by_term, by_term.sum(dim=-1)
    by_term = by_total * weight.exp()
    return by_term, (by_term * term).sum(dim=-1)


def _random_state(h: Tensor) -> tuple[Tensor, Any]:
    """The state of the generators, for dropout."""
    return torch.get_rng_state(), get_device_states(h)


@contextmanager
def _randomly(state: tuple[Tensor, Any], h: Tensor) -> Iterator[None]:
    """Draw again what was drawn after that state."""
    devices, states = state[1]
    with torch.random.fork_rng(devices=devices, device_type=h.device.type):
        torch.set_rng_state(state[0])
        if devices:
            set_device_states(devices, states)
        yield
