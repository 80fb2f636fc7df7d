"""Which models the compiled kernels evaluate."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from eegnn.graph import Adjacency
from eegnn.nn import inference
from eegnn.nn.answers import MixtureAnswer, Record, StateAnswer
from eegnn.nn.compiled import kernels_for
from eegnn.nn.encoders import Decoder
from eegnn.nn.fused import FusedNodeWalk, FusedWalk
from eegnn.nn.fused_graphs import FusedGraphWalk
from eegnn.nn.sas import SASStep


def fused_walk(
    loop: Any, h: Tensor, adj: Adjacency, plan: inference.Plan, answer: StateAnswer
) -> FusedWalk | None:
    """Return a walk by kernels, or ``None`` where there are none for this model.

    They need the paper's step, heads of one layer, and graphs pooled by sum or mean.

    Args:
        loop: an :class:`~eegnn.EarlyExit`.
        h, adj, plan, answer: see :class:`~eegnn.nn.inference.WholeWalk`.
    """
    kernels = kernels_for(h)
    if kernels is None or h.numel() == 0 or loop.head_norm or loop.step_size == "mean":
        return None
    if not isinstance(answer.readout, Decoder):
        return None
    if type(answer) not in (StateAnswer, MixtureAnswer, Record):
        return None
    if not all(isinstance(step, SASStep) and step.is_plain(h) for step in plan.steps):
        return None
    heads = inference.linear_heads(loop.confidence, loop.temperature)
    if heads is None:
        return None
    h = h.contiguous()
    step_size = None if isinstance(loop.step_size, str) else float(loop.step_size)
    given = (kernels, h, adj, plan, answer, heads, step_size)
    if loop.level == "node":
        return FusedNodeWalk(*given)
    if loop.pool == "max" or heads.reads:
        return None
    return FusedGraphWalk(*given, mean=loop.pool == "mean")
