r"""The prediction of a unit that leaves at layer l with probability :math:`w_l`."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import log_softmax, logsigmoid, softmax

from eegnn.nn.exits import Exits


def leaky(score: Tensor, leak: float) -> Tensor:
    r"""Return the log-odds :math:`s'` of continuing where some leave whatever the heads say.

    .. math::
        \sigma(s') = (1 - \epsilon)\,\sigma(s)

    Args:
        score: the log-odds :math:`s`, of any shape.
        leak: :math:`\epsilon`, the probability of leaving here anyway.
    """
    if leak == 0:
        return score
    leave = leak + (1 - leak) * torch.sigmoid(-score)
    return math.log1p(-leak) + logsigmoid(score) - leave.log()


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


def mixed_exits(score: Tensor, tau: Tensor, num_layers: int) -> Exits:
    """The exits of units that went through every layer: where one half of each had left.

    Args:
        score: ``[steps, U]``, the log-odds of continuing.
        tau: ``[steps, U]``, the step sizes.
        num_layers: the budget L.
    """
    log_stay = logsigmoid(score).cumsum(dim=0)
    layer = (~(log_stay.detach() <= math.log(0.5))).sum(dim=0)  # NaN stays
    step = torch.arange(tau.size(0), device=tau.device).unsqueeze(-1)
    return Exits(
        layer=layer,
        time=tau.masked_fill(step >= layer, 0.0).sum(dim=0),
        tau=tau,
        cost=log_stay.exp().sum() / max(score.size(1) * num_layers, 1),
        num_layers=num_layers,
    )


def stopped_log_weights(log_stay: Tensor, layer: Tensor) -> Tensor:
    r"""Return :math:`\log w_k` of units that leave at ``layer``, which counts for the rest.

    Args:
        log_stay: ``[L, U]``, the log-probability of going on after the decision at each layer.
        layer: ``int64 [U]``, where each unit leaves.

    Returns:
        ``[L + 1, U]``; −∞ after ``layer``.
    """
    here = torch.cat([log_stay.new_zeros(1, log_stay.size(1)), log_stay])
    going = torch.cat([log_stay, log_stay.new_full((1, log_stay.size(1)), -torch.inf)])
    passed = here + torch.log(-torch.expm1(going - here))  # log(e^here − e^going)
    step = torch.arange(here.size(0), device=here.device).unsqueeze(-1)
    rest = torch.where(step == layer, here, -torch.inf)
    return torch.where(step < layer, passed, rest)


class Mixture(NamedTuple):
    """How outputs of several exits become one, for one kind of task.

    Training needs gradients of what is improbable, and so averages in logarithms where outputs
    stand for probabilities: ``encode`` makes of an output, one of whose dimensions is ``C``, what
    is averaged, ``decode`` makes of the average an output again, and ``logarithmic`` says that
    both are logarithms. Evaluation averages the probabilities themselves, a fraction of the time:
    ``share`` makes them of outputs ``[C, U]``, and ``back`` makes of their average ``[U, *]`` an
    output. ``doubt`` says of an average ``[*, U]`` how far it is from being sure, from 0 to 1;
    ``None`` where nothing tells.
    """

    encode: Callable[[Tensor, int], Tensor]
    decode: Callable[[Tensor], Tensor]
    logarithmic: bool
    share: Callable[[Tensor], Tensor]
    back: Callable[[Tensor], Tensor]
    doubt: Callable[[Tensor], Tensor] | None

    def mean(self, log_weight: Tensor, output: Tensor, dim: int = -1) -> Tensor:
        """From ``[L + 1, U]`` and ``[L + 1, U, C]`` to the output ``[U, C]`` of the mixture.

        With ``dim=1`` outputs are ``[L + 1, C, U]``: with few classes a fraction of the time.
        """
        weight, term = log_weight.unsqueeze(dim), self.encode(output, dim)
        if self.logarithmic:
            total = torch.logsumexp(weight + term, dim=0)
        else:
            total = (weight.exp() * term).sum(dim=0)
        return self.decode(total.T if dim == 1 else total)


def _label_terms(output: Tensor, dim: int) -> Tensor:
    return torch.cat([logsigmoid(output), logsigmoid(-output)], dim)


def _label_shares(output: Tensor) -> Tensor:
    return torch.cat([output.sigmoid(), (-output).sigmoid()])


def _log_odds(terms: Tensor) -> Tensor:
    yes, no = terms.chunk(2, dim=-1)
    return yes - no


def _log(shares: Tensor) -> Tensor:
    """The logarithm, finite also where a probability is too small for a float."""
    return shares.clamp(min=torch.finfo(shares.dtype).tiny).log()


def _same(values: Tensor, dim: int = -1) -> Tensor:
    return values


def _class_doubt(shares: Tensor) -> Tensor:
    """1 for classes that are equally probable."""
    classes = shares.size(0)
    return (1 - shares.amax(dim=0)) * (classes / max(classes - 1, 1))


def _label_doubt(shares: Tensor) -> Tensor:
    """That of the label which is least sure."""
    yes, no = shares.chunk(2)
    return 2 * torch.minimum(yes, no).amax(dim=0)


#: Classification gives log-probabilities, which are logits again, for any cross-entropy; labels
#: give log-odds, for binary cross-entropy; regression gives the mean.
MIXTURES: dict[str, Mixture] = {
    "classification": Mixture(
        log_softmax, _same, True, partial(softmax, dim=0), _log, _class_doubt
    ),
    "multilabel": Mixture(
        _label_terms,
        _log_odds,
        True,
        _label_shares,
        lambda shares: _log_odds(_log(shares)),
        _label_doubt,
    ),
    "regression": Mixture(_same, _same, False, _same, _same, None),
}
