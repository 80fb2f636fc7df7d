r"""The prediction of a unit that leaves at layer l with probability :math:`w_l`."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import log_softmax, logsigmoid


def exit_log_probabilities(score: Tensor) -> Tensor:
    r"""Return :math:`\log w_l`, the probability of leaving at each layer.

    .. math::
        w_l = (1 - p_l)\prod_{k<l} p_k \quad (l < L), \qquad w_L = \prod_{k<L} p_k,
        \qquad p_l = \sigma(s_l)

    Args:
        score: ``[L, U]``, the log-odds :math:`s_l` of continuing.

    Returns:
        ``[L + 1, U]``; the exponentials sum to one over the first dimension.
    """
    zero = score.new_zeros(1, score.size(1))
    before = torch.cat([zero, logsigmoid(score).cumsum(dim=0)])
    leave = torch.cat([logsigmoid(-score), zero])
    return before + leave


def _classes(log_weight: Tensor, output: Tensor) -> Tensor:
    """Log-probabilities of the mixture: logits again, for any cross-entropy."""
    return torch.logsumexp(log_weight.unsqueeze(-1) + log_softmax(output, dim=-1), dim=0)


def _labels(log_weight: Tensor, output: Tensor) -> Tensor:
    """Log-odds of the mixture of independent labels: logits again, for binary cross-entropy."""
    weight = log_weight.unsqueeze(-1)
    return torch.logsumexp(weight + logsigmoid(output), dim=0) - torch.logsumexp(
        weight + logsigmoid(-output), dim=0
    )


def _mean(log_weight: Tensor, output: Tensor) -> Tensor:
    """Mean of the mixture."""
    return (log_weight.exp().unsqueeze(-1) * output).sum(dim=0)


#: How outputs ``[L + 1, U, C]`` of all exits become one output ``[U, C]``, for each kind of task.
MIXTURES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "classification": _classes,
    "multilabel": _labels,
    "regression": _mean,
}
