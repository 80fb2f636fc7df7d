"""Steps of one size whose moves are kept for the backward pass, and lead back to the states."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from eegnn.graph import Adjacency
from eegnn.nn.advance import before, moved
from eegnn.nn.again import Back, leaves, rebound, tensors_of
from eegnn.nn.sas_conv import SASStep
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
