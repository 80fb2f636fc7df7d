"""Exits: who left when."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor


@dataclass(frozen=True, repr=False)
class Exits:
    r"""When each unit (node or graph) left.

    Attributes:
        layer: ``int64 [U]``, steps taken before leaving, ``0 … num_layers``. A unit that leaves
            at once has 0, one that never chose to leave has ``num_layers``.
        time: ``[U]``, :math:`\sum_l \tau^l` over those steps: the paper's continuous exit.
        tau: ``[steps run, U]``, every step size; 0 where a unit that had left was not updated,
            or no longer mattered.
        cost: scalar, the share of the budget used. In training it is differentiable and the
            expectation over exits: ``loss + 0.02 * exits.cost`` asks for earlier ones.
        num_layers: the budget :math:`L`.
        outputs: ``[L + 1, U, C]``, the prediction at each exit; in training without sampling. Of
            the last exit alone, ``[1, U, C]``, where the others are not kept (``recompute``).
        log_weight: ``[L + 1, U]``, the log-probability :math:`\log w_l` of each exit; likewise.
    """

    layer: Tensor
    time: Tensor
    tau: Tensor
    cost: Tensor
    num_layers: int
    outputs: Tensor | None = None
    log_weight: Tensor | None = None

    @classmethod
    def all_at(cls, layer: int, num_layers: int, units: Tensor, step_size: float = 1.0) -> Exits:
        """Everyone leaves at the same layer, as from a model of fixed depth.

        Args:
            layer: steps taken.
            num_layers: the budget.
            units: states ``[U, m']``, for their number, dtype and device.
            step_size: of each step.
        """
        tau = units.new_full((layer, units.size(0)), step_size)
        return cls(
            layer=torch.full(units.shape[:1], layer, device=units.device),
            time=tau.sum(dim=0),
            tau=tau,
            cost=units.new_tensor(layer / num_layers),
            num_layers=num_layers,
        )

    def average_loss(
        self, loss: Callable[..., Tensor], y: Tensor, index: Tensor | None = None
    ) -> Tensor:
        r"""Return :math:`\frac1U\sum_u\sum_l w_{lu}\,\ell(\mathrm{out}_{lu}, y_u)`, in training.

        Where the exits differ this is above the loss of their mixture, and it is minimised only
        if each exit that is used is right by itself.

        Args:
            loss: as in :mod:`torch.nn.functional`, with ``reduction="none"``.
            y: labels of the units that count.
            index: which units count, ``int64`` or ``bool``; ``None`` for all.
        """
        if self.outputs is None or self.log_weight is None:
            raise ValueError("average_loss needs the exits of a model in training, not sampled")
        out, log_weight = self.outputs, self.log_weight
        if index is not None:
            out, log_weight = out[:, index], log_weight[:, index]
        steps, units = log_weight.shape
        value = loss(out.flatten(0, 1), y.repeat(steps, *[1] * (y.dim() - 1)), reduction="none")
        value = value.view(steps, units, -1).mean(dim=-1)
        return (log_weight.exp() * value).sum(dim=0).mean()

    @property
    def histogram(self) -> Tensor:
        """``int64 [num_layers + 1]``, how many units left at each layer."""
        return torch.bincount(self.layer, minlength=self.num_layers + 1)

    @property
    def collapsed(self) -> bool:
        """Whether everyone left at layer 0, so that nothing can be learned."""
        return self.layer.numel() > 0 and bool((self.layer == 0).all())

    def summary(self) -> dict[str, Any]:
        """Return minimum, median, mean and maximum of ``layer``, and the histogram."""
        if self.layer.numel() == 0:
            nothing = dict.fromkeys(("min", "median", "mean", "max"))
            return {**nothing, "histogram": self.histogram.tolist()}
        layer = self.layer.cpu().numpy()
        return {
            "min": int(layer.min()),
            "median": float(np.median(layer)),
            "mean": float(layer.mean()),
            "max": int(layer.max()),
            "histogram": self.histogram.tolist(),
        }

    def __repr__(self) -> str:
        s = self.summary()
        return (
            f"Exits(units={self.layer.numel()}, num_layers={self.num_layers}, "
            f"min={s['min']}, median={s['median']}, max={s['max']})"
        )
