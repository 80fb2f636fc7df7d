"""Data-parallel training: losses, gradients and statistics over the graphs of all ranks.

Every rank draws the same batches and takes its share of each. Losses and gradients are those of the
whole batch, so all ranks take the same step.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from eegnn.distributed import Ranks


@dataclass(frozen=True)
class GlobalMean:
    r"""Averages over the units of all ranks.

    .. math::
        \bar{v} = \sum_r \frac{n_r}{N} v_r,
        \qquad v_r \text{ the average over the } n_r \text{ units of rank } r

    The value is :math:`\bar{v}` on each rank, the gradient that of the own term: summed over ranks,
    gradients are those of :math:`\bar{v}`, and of any function of it such as its logarithm.

    Args:
        ranks: the ranks that average.
        share: :math:`n_r / N`.
        total: :math:`N`.
    """

    ranks: Ranks
    share: float
    total: int

    def __call__(self, local: Tensor) -> Tensor:
        """Return the average over all ranks, from that over the units of this rank."""
        if self.ranks.size == 1:
            return local
        term = local * self.share
        total = self.ranks.all_reduce_(term.detach().clone())
        return term + (total - term.detach())


def global_means(ranks: Ranks, *counts: int) -> list[GlobalMean]:
    """Return, for each number of units on this rank, how to average over those of all ranks."""
    totals = ranks.all_reduce_(torch.tensor(counts)).tolist()
    return [
        GlobalMean(ranks, count / max(total, 1), total)
        for count, total in zip(counts, totals, strict=True)
    ]


def sum_gradients(ranks: Ranks, parameters: Iterable[nn.Parameter]) -> None:
    """Sum gradients over ranks; a parameter without a gradient on any rank is left without.

    This replaces DistributedDataParallel, which averages over ranks, and must know beforehand which
    parameters a pass leaves out; here the data decide that.
    """
    if ranks.size == 1:
        return
    parameters = list(parameters)
    device = parameters[0].device
    present = torch.tensor([p.grad is not None for p in parameters], device=device).float()
    gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
    summed = ranks.all_reduce_(torch.cat([parameters_to_vector(gradients), present]))
    vector_to_parameters(summed[: -len(parameters)], gradients)
    present_anywhere = (summed[-len(parameters) :] > 0).tolist()
    for parameter, gradient, present_ in zip(parameters, gradients, present_anywhere, strict=True):
        parameter.grad = gradient if present_ else None


def average_buffers(ranks: Ranks, model: nn.Module) -> None:
    """Average the running statistics, which each rank has from its own graphs."""
    if ranks.size == 1:
        return
    for buffer in model.buffers():
        if buffer.is_floating_point():
            buffer.copy_(ranks.all_reduce_(buffer.clone()) / ranks.size)


def seed_rank(ranks: Ranks, seed: int, epoch: int) -> None:
    """Give each rank random numbers of its own for dropout and exits."""
    state = np.random.SeedSequence((seed, epoch, ranks.rank)).generate_state(1, np.uint64)
    torch.manual_seed(int(state[0]))
