"""What a training step that keeps no more than states needs on the way back."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import get_device_states, set_device_states

from eegnn.graph import Adjacency
from eegnn.nn.advance import step_gradients
from eegnn.nn.answers import states_alone
from eegnn.nn.sas import SASStep

#: Of the generator of the processor, and of those of other devices.
Random = tuple[Tensor, Any]


def can_stream(steps: Sequence[Any], parts: Sequence[Any], h: Tensor) -> bool:
    """Whether all that gradients go to is known: in steps, and in heads and decoder, ``parts``."""
    return (
        torch.is_grad_enabled()
        and not torch.is_autocast_enabled(h.device.type)
        and all(isinstance(step, SASStep) and step.conv.norm is None for step in steps)
        and all(isinstance(part, nn.Module) or part is states_alone for part in parts)
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


def weights_of(modules: Sequence[Any]) -> list[Tensor]:
    """The parameters of those that are modules."""
    inside = [m for m in modules if isinstance(m, nn.Module)]
    return [p for m in inside for p in m.parameters() if p.requires_grad]


class Back:
    """Gradients on the way back, added up.

    Args:
        tensors: leaves that have gradients, or not.
    """

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        self.tensors = tensors
        self.wanted = [t for t in tensors if t.requires_grad]
        self.sums: dict[int, Tensor] = {}
        self.by_h: Tensor | None = None

    def step(
        self,
        step: SASStep,
        h: Tensor,
        adj: Adjacency,
        tau: Tensor,
        move: Tensor,
        by_next: Tensor,
    ) -> list[tuple[Tensor, Tensor | None]]:
        """Go back through a step: what autograd is to go on with, and the gradients of that."""
        if not step.is_plain(h):
            after = torch.addcmul(h, tau.unsqueeze(-1), step(h, adj).to(h.dtype))
            return [(after, by_next)]
        self.by_h, by_tau = self.plain_step(step, h, adj, tau, move, by_next)
        return [(tau, by_tau)]

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

    def through(self, made: Sequence[tuple[Tensor, Tensor | None]], h: Tensor) -> Tensor:
        """Go back to the states ``h`` from what was made of them; return their gradient."""
        pairs = [(m, g) for m, g in made if m.requires_grad and g is not None]
        by_h, *found = torch.autograd.grad(
            [m for m, _ in pairs], [h, *self.wanted], [g for _, g in pairs], allow_unused=True
        )
        for tensor, gradient in zip(self.wanted, found, strict=True):
            self.add(tensor, gradient)
        return self.with_step(by_h)

    def with_step(self, by_h: Tensor) -> Tensor:
        """Add the gradient of the states that came through the step, if one was gone back."""
        if self.by_h is not None:
            by_h, self.by_h = self.by_h.add_(by_h), None
        return by_h

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


def random_state(h: Tensor) -> Random:
    """The state of the generators, for dropout."""
    return torch.get_rng_state(), get_device_states(h)


def if_drawn(before: Random, h: Tensor) -> Random | None:
    """That state if numbers were drawn since; mostly none are, and none have to be drawn again."""
    now = random_state(h)
    pairs = zip((before[0], *before[1][1]), (now[0], *now[1][1]), strict=True)
    return None if all(torch.equal(old, new) for old, new in pairs) else before


@contextmanager
def randomly(state: Random | None, h: Tensor) -> Iterator[None]:
    """Draw again what was drawn after that state."""
    if state is None:
        yield
        return
    devices, states = state[1]
    with torch.random.fork_rng(devices=devices, device_type=h.device.type):
        torch.set_rng_state(state[0])
        if devices:
            set_device_states(devices, states)
        yield
