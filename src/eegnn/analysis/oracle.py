"""The oracle exit: how much there is to gain by leaving at the right layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor

from eegnn import _check
from eegnn.analysis.layers import LayerOutputs
from eegnn.train.metrics import score_of

#: Which of the layers that are right.
Pick = Literal["earliest", "latest", "confident"]


@dataclass(frozen=True)
class Oracle:
    """What an exit rule that knows the labels would reach."""

    layer: Tensor  #: ``int64 [U]``, the exit layers
    score: float
    cost: float  #: mean exit layer as a share of the budget
    full_score: float  #: at full depth
    right_somewhere: float  #: share of units that some layer classifies correctly
    right_at_end: float  #: share of units that the last layer classifies correctly


def oracle(outputs: LayerOutputs, y: Tensor, metric: str, pick: Pick = "earliest") -> Oracle:
    """Let every unit leave at a layer that classifies it correctly (the paper's optimal exit).

    As in the paper, the logits of a unit are those of a layer at which its prediction is correct,
    and those of the last layer where there is none; the metric of the data set is computed on
    them. The paper does so for SAS-GNN, and leaves open:

    * *Which layer, where several are correct.* The accuracy is the same; the area under the ROC
      curve is not, since it ranks logits of different layers. The earliest is the cheapest exit,
      and may rank worse than full depth: on three splits of Tolokers SASGNN reaches 85.3 at full
      depth, 72.2 with the earliest and 87.8 with the latest correct layer (with the encoder alone
      as one more exit). The paper has 85.8 and 89.2: compare ``"latest"`` with its table.
    * *Whether the encoder alone is an exit.* Here it is not: EEGNN leaves after a step.
    * *What correct means for the ROC AUC.* Here: the largest logit is that of the class.

    Args:
        outputs: of a model with or without exits.
        y: the class of each unit, ``int64 [U]``.
        metric: a name in :data:`~eegnn.train.metrics.METRICS`.
        pick: the ``"earliest"`` or the ``"latest"`` of the correct layers, or the most
            ``"confident"`` one, which gives the class the largest probability.
    """
    _check.choice("pick", pick, get_args(Pick))
    if y.dtype != torch.int64 or y.shape != (outputs.num_units,):
        raise ValueError(
            f"y must be int64 of shape [{outputs.num_units}], the class of each unit, got "
            f"{y.dtype} of shape {list(y.shape)}"
        )
    depth = outputs.num_layers
    right = outputs.out.argmax(dim=-1) == y
    somewhere = right.any(dim=0)
    order = torch.arange(depth, 0, -1, device=y.device).view(-1, 1)  # the largest is taken
    if pick == "latest":
        order = order.flip(0)
    elif pick == "confident":
        order = outputs.out.softmax(dim=-1)[:, torch.arange(len(y), device=y.device), y]
    layer = (1 + order.where(right, -1).argmax(dim=0)).where(somewhere, depth)
    return Oracle(
        layer=layer,
        score=score_of(outputs.at(layer), y, metric),
        cost=_mean(layer) / depth,
        full_score=score_of(outputs.out[-1], y, metric),
        right_somewhere=_mean(somewhere),
        right_at_end=_mean(right[-1]),
    )


def _mean(values: Tensor) -> float:
    return float(values.cpu().double().mean())
