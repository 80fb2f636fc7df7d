"""Exits: who left when."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils._pytree import register_pytree_node

_TENSORS = ("layer", "time", "tau", "cost")


@dataclass(eq=False, repr=False)
class Exits:
    r"""When each unit (node or graph) left.

    A plain container of tensors, which PyTorch's tree functions, Lightning and DDP know how to take
    apart.

    Attributes:
        layer: ``int64 [U]``, steps taken, ``1 … num_layers``, as in the paper's tables. A unit that
            wants to leave takes one more step, damped by its :math:`\tau`, and leaves with the
            state after it; one that never wants to has ``num_layers``.
        time: ``[U]``, :math:`\sum_l \tau^l` over those steps: the paper's continuous exit.
        tau: ``[steps run, U]``, every step size; 0 where a unit that had left was not updated.
        cost: scalar, the share of the budget used. In training it is differentiable and the
            expectation over exits: ``loss + 0.02 * exits.cost`` asks for earlier ones.
        num_layers: the budget.
        backend: what ran the loop, a name in :data:`eegnn.engine.BACKENDS`.
    """

    layer: Tensor
    time: Tensor
    tau: Tensor
    cost: Tensor
    num_layers: int
    backend: str = "reference"

    @classmethod
    def all_at(
        cls,
        layer: int,
        num_layers: int,
        units: Tensor,
        step_size: float = 1.0,
        backend: str = "reference",
    ) -> Exits:
        """Everyone leaves at the same layer, as from a model of fixed depth.

        Args:
            layer: steps taken.
            num_layers: the budget.
            units: states ``[U, m']``, for their number, dtype and device.
            step_size: of each step.
            backend: what ran the loop.
        """
        tau = units.new_full((layer, units.size(0)), step_size)
        return cls(
            layer=torch.full(units.shape[:1], layer, device=units.device),
            time=tau.sum(dim=0),
            tau=tau,
            cost=units.new_full((), layer / num_layers),
            num_layers=num_layers,
            backend=backend,
        )

    def to(self, device: torch.device | str) -> Exits:
        """Return a copy on another device."""
        return self._map(lambda tensor: tensor.to(device))

    def cpu(self) -> Exits:
        """Return a copy on the CPU."""
        return self.to("cpu")

    def detach(self) -> Exits:
        """Return a copy without gradients."""
        return self._map(Tensor.detach)

    def _map(self, function: Callable[[Tensor], Tensor]) -> Exits:
        changed: dict[str, Any] = {name: function(getattr(self, name)) for name in _TENSORS}
        return replace(self, **changed)

    @property
    def histogram(self) -> Tensor:
        """``int64 [num_layers + 1]``, how many units left at each layer; nobody leaves at 0."""
        return torch.bincount(self.layer, minlength=self.num_layers + 1)

    @property
    def collapsed(self) -> bool:
        """Whether everyone left after the first step, with little more than their own features."""
        return self.layer.numel() > 0 and bool((self.layer == 1).all())

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


register_pytree_node(
    Exits,
    lambda exits: ([getattr(exits, name) for name in _TENSORS], (exits.num_layers, exits.backend)),
    lambda tensors, context: Exits(*tensors, *context),
    serialized_type_name="eegnn.Exits",
)
