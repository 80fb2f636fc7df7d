"""Exits: who left when."""

from __future__ import annotations

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
        tau: ``[steps run, U]``, every step size; 0 where a unit that had left was not updated.
        cost: scalar, the share of the budget used. In training it is differentiable and the
            expectation over exits: ``loss + 0.02 * exits.cost`` asks for earlier ones.
        num_layers: the budget :math:`L`.
    """

    layer: Tensor
    time: Tensor
    tau: Tensor
    cost: Tensor
    num_layers: int

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
