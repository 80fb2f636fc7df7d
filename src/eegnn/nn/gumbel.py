r"""The exit distribution: a Gumbel-softmax over {continue, exit} (Appendix, Eq. 20-21).

Over two actions it has a short form. With confidences :math:`\mathbf{C} = (C_0, C_1)` as raw
logits, their difference :math:`\delta = C_0 - C_1`, and Gumbel noise :math:`g_0, g_1`,

.. math::
    \tau = \mathbf{c}(\texttt{0})
    = \mathrm{softmax}\bigl((\mathbf{C} + \mathbf{g})/\nu\bigr)_0
    = \sigma\bigl((\delta + g_0 - g_1)/\nu\bigr),

and :math:`g_0 - g_1` is logistic: one random number instead of two, and no logarithm of a
probability, whose gradient is NaN for confident heads.
"""

from __future__ import annotations

import torch
from torch import Tensor


def logistic_noise(like: Tensor) -> Tensor:
    """Draw the difference of two standard Gumbel variables for each entry of ``like``."""
    tiny = torch.finfo(like.dtype).tiny
    uniform = torch.rand_like(like).clamp(min=tiny)
    return uniform.log() - torch.log1p(-uniform)


def continue_score(score: Tensor, inverse_temperature: Tensor, hard: bool = False) -> Tensor:
    r"""Return :math:`\tau = \sigma(s / \nu)`, the soft score of *continue*.

    Args:
        score: ``[U]``, :math:`s = \delta` or, with noise, :math:`\delta + g_0 - g_1`.
        inverse_temperature: ``[U]``, :math:`1/\nu`. Multiplied, never divided by: it may be 0.
        hard: straight-through: the value is 0 or 1 (``argmax``), the gradient that of the soft
            score.
    """
    soft = torch.sigmoid(score * inverse_temperature)
    if not hard:
        return soft
    return (score >= 0).to(soft.dtype) + (soft - soft.detach())
