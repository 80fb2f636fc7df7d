r"""What heads of one layer and a linear decoder make of the states of nodes in training.

By autograd alone these are seven operators for each exit, and as many on the way back, most of them
over all states; here it is one compiled kernel each way.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from eegnn.graph import Adjacency
from eegnn.nn.compiled import kernels_for
from eegnn.nn.encoders import Decoder
from eegnn.nn.inference import Linear


class Looks(NamedTuple):
    """What there is to see of states ``[n, m']``.

    ``delta`` and ``inverse`` ``[n]`` are δ and 1/ν, ``said`` ``[C, n]`` is what nodes would say.
    """

    delta: Tensor
    inverse: Tensor
    said: Tensor


def look(h: Tensor, adj: Adjacency, heads: Linear, decoder: Decoder) -> Looks:
    """Return what heads and decoder see; each call draws its own dropout.

    Args:
        h: states ``[n, m']``, for which there are kernels.
        adj: the graph.
        heads: their weights.
        decoder: a linear one.
    """
    drawn = decoder.dropout.draw(h)
    weight = decoder.mlp.lins[0].weight
    facts, said = _Look.apply(h, heads.weight, weight, drawn, decoder.dropout)
    own, others, cold = facts.unbind()
    delta = own + heads.bias
    if heads.reads:
        delta = delta + adj.propagate(others.unsqueeze(-1), "mean").squeeze(-1)
    return Looks(delta, softplus(cold) + heads.nu0, said)


def watched(*modules: nn.Module) -> bool:
    """Whether a hook waits for a call of any of these, or of what is in them."""
    kinds = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    inside = (m for module in modules for m in module.modules())
    return any(getattr(m, kind) for m in inside for kind in kinds)


class _Look(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, h: Tensor, heads: Tensor, decoder: Tensor, drawn: Tensor | None, dropout: Any
    ) -> tuple[Tensor, Tensor]:
        kernels = kernels_for(h)
        assert kernels is not None
        h = h.contiguous()
        ctx.save_for_backward(h, heads, decoder, drawn)
        ctx.below, ctx.factor = dropout.below, dropout.factor
        facts, said = h.new_empty(3, h.size(0)), h.new_empty(decoder.size(0), h.size(0))
        kernels.look(
            h.numel(),
            h.numpy(),
            kernels.panels_of((torch.cat([heads, decoder]) if drawn is None else heads).T),
            kernels.panels_of(decoder.T),
            _numbers(drawn, h),
            np.int16(min(ctx.below, 2**15 - 1)),
            np.float32(ctx.factor),
            facts.numpy(),
            said.numpy(),
        )
        return facts, said

    @staticmethod
    def backward(ctx: Any, by_facts: Tensor, by_said: Tensor) -> tuple[Tensor | None, ...]:
        h, heads, decoder, drawn = ctx.saved_tensors
        if torch.is_grad_enabled():  # gradients of gradients: by autograd
            z = h if drawn is None else h * (drawn < ctx.below) * ctx.factor
            by_z = by_said.T @ decoder
            if drawn is not None:
                by_z = by_z * (drawn < ctx.below) * ctx.factor
            return by_facts.T @ heads + by_z, by_facts @ h, by_said @ z, None, None
        kernels = kernels_for(h)
        assert kernels is not None
        found = (torch.empty_like(h), torch.zeros_like(heads), torch.zeros_like(decoder))
        kernels.look_back(
            h.numel(),
            *(t.contiguous().numpy() for t in (h, heads, decoder)),
            _numbers(drawn, h),
            np.int16(min(ctx.below, 2**15 - 1)),
            np.float32(ctx.factor),
            *(t.contiguous().numpy() for t in (by_facts, by_said)),
            *(t.numpy() for t in found),
        )
        return *found, None, None


def _numbers(drawn: Tensor | None, h: Tensor) -> Any:
    drawn = torch.empty(0, h.size(1), dtype=torch.int16) if drawn is None else drawn
    return drawn.numpy()
