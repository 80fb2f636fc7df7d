"""What a training step that keeps no more than states needs on the way back."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from eegnn.graph import Adjacency
from eegnn.nn.advance import step_gradients
from eegnn.nn.sas_conv import SASStep


def can_stream(steps: Sequence[Any], h: Tensor) -> bool:
    """Whether all that gradients go to is known."""
    return (
        torch.is_grad_enabled()
        and not torch.is_autocast_enabled(h.device.type)
        and all(isinstance(step, SASStep) and step.conv.norm is None for step in steps)
    )


def tensors_of(steps: Sequence[SASStep]) -> list[Tensor]:
    """What steps were bound to."""
    bound = (t for step in steps for t in (step.omega, step.weight, step.edge_term))
    return [t for t in bound if t is not None]


def rebound(steps: Sequence[SASStep], tensors: Sequence[Tensor]) -> list[SASStep]:
    """The same steps, bound to other tensors."""
    left, others = list(tensors), []
    for step in steps:
        other = copy.copy(step)
        other.omega, other.weight = left.pop(0), left.pop(0)
        if step.edge_term is not None:
            other.edge_term = left.pop(0)
        others.append(other)
    return others


def leaves(tensors: Sequence[Tensor]) -> list[Tensor]:
    """The same numbers, not made of anything."""
    return [t.detach().requires_grad_(t.requires_grad) for t in tensors]


class Back:
    """Gradients on the way back, added up.

    Args:
        tensors: leaves that have gradients, or not.
    """

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        self.tensors = tensors
        self.sums: dict[int, Tensor] = {}

    def plain_step(
        self,
        step: SASStep,
        h: Tensor,
        adj: Adjacency,
        tau: Tensor | float,
        move: Tensor,
        by_next: Tensor,
    ) -> tuple[Tensor, Tensor | None]:
        """The gradients of states and step sizes."""
        given = (step.omega, step.weight, step.edge_term)
        with torch.no_grad():
            by_h, *found, by_tau = step_gradients(step, h, adj, tau, by_next, move, "move")
        for tensor, gradient in zip(given, found, strict=True):
            if tensor is not None:
                self.add(tensor, gradient)
        return by_h, by_tau

    def gradients(self) -> list[Tensor | None]:
        """Of all tensors."""
        return [self.sums.get(id(tensor)) for tensor in self.tensors]

    def add(self, tensor: Tensor, gradient: Tensor | None) -> None:
        """Add to the gradient of one of the tensors."""
        if gradient is None or not tensor.requires_grad:
            return
        if id(tensor) in self.sums:
            self.sums[id(tensor)] += gradient
        else:
            self.sums[id(tensor)] = gradient
