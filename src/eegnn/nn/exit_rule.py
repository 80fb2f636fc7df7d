r"""Which units leave: the paper's rule, or a threshold on the probability of having left."""

from __future__ import annotations

import math

from torch import Tensor


def wants_to_leave(drawn: Tensor, log_stay: Tensor, exit_threshold: float | None) -> Tensor:
    r"""Return ``bool [U]``, which units leave after the step that follows.

    The paper's rule is :math:`\arg\max\{\mathbf{c}\} = 1`: *exit* has the larger score, which does
    not depend on the temperature. With a threshold :math:`\theta` a unit leaves once its
    probability of having left, :math:`1 - \prod_{k \le l} \sigma(\delta^k)`, reaches
    :math:`\theta`: at 0 all units leave after the first step, at 1 none before the last.

    Args:
        drawn: ``[U]``, :math:`\delta = C_0 - C_1`, with the noise if there is any.
        log_stay: ``[U]``, :math:`\sum_{k \le l} \log\sigma(\delta^k)`.
        exit_threshold: :math:`\theta`; ``None`` for the paper's rule.
    """
    if exit_threshold is None:
        return drawn < 0
    return log_stay <= (math.log1p(-exit_threshold) if exit_threshold < 1 else -math.inf)
