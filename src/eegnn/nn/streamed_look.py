"""Heads and decoder where no more than states is kept: at once, and again on the way back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from eegnn.nn.again import Back, weights_of
from eegnn.nn.look import Eyes, Seen
from eegnn.nn.mixture import leaky


class Said(NamedTuple):
    """What is said ``[C, U]``, the log-odds of continuing and the step sizes, both ``[U]``."""

    said: Tensor
    score: Tensor
    tau: Tensor


#: From states and step sizes back through the step that follows: what autograd is to go on with,
#: and the gradients of that.
Onward = Callable[[Tensor, Tensor], list[tuple[Tensor, Tensor | None]]]
#: From states to what is said of them.
Say = Callable[[Tensor], Said]


class Again(Protocol):
    """What is said of states once more."""

    found: Said

    def back(self, by_said: Tensor, by_score: Tensor, onward: Onward) -> Tensor:
        """The gradient of the states; those of weights go where gradients are added up."""


class Look(Protocol):
    """Heads and decoder."""

    @property
    def tensors(self) -> Sequence[Tensor]:
        """What their gradients go to."""

    def glance(self, h: Tensor) -> Said:
        """Look at states, without gradients."""

    def again(self, h: Tensor, back: Back, tensors: Sequence[Tensor]) -> Again:
        """Look at the same states later; ``tensors`` are its own, as ``back`` knows them."""


class ByAutograd:
    """Any heads and any decoder.

    Args:
        decide: with gradients.
        glance: without, faster.
        modules: what both use; those that are modules have parameters.
    """

    def __init__(self, decide: Say, glance: Say, modules: Sequence[Any]) -> None:
        self.decide, self.glance = decide, glance
        self.tensors = weights_of(modules)

    def again(self, h: Tensor, back: Back, tensors: Sequence[Tensor]) -> Again:
        """Let autograd watch."""
        return _Watched(self.decide, h, back)


class _Watched:
    def __init__(self, decide: Say, h: Tensor, back: Back) -> None:
        self.h, self._back = h.detach().requires_grad_(), back
        with torch.enable_grad():
            self.found = decide(self.h)

    def back(self, by_said: Tensor, by_score: Tensor, onward: Onward) -> Tensor:
        said, score, tau = self.found
        with torch.enable_grad():
            made = onward(self.h, tau)
        return self._back.through([(said, by_said), (score, by_score), *made], self.h)


class ByKernels:
    """Heads of one layer and a linear decoder, for nodes whose steps are plain.

    Args:
        eyes: both of them.
        leak: the probability of leaving at a layer whatever the heads say.
        step_size: of all steps; ``None``: τ.
    """

    def __init__(self, eyes: Eyes, leak: float, step_size: float | None) -> None:
        self.eyes, self.leak, self.step_size = eyes, leak, step_size
        self.tensors = eyes.tensors

    def glance(self, h: Tensor) -> Said:
        """Look at states, without gradients."""
        return self.say(self.eyes.look(h))

    def say(self, seen: Seen) -> Said:
        """What follows from what is seen."""
        scaled = seen.delta * seen.inverse
        tau = scaled.sigmoid() if self.step_size is None else scaled.new_full((), self.step_size)
        return Said(seen.said, leaky(scaled, self.leak), tau.expand_as(scaled))

    def again(self, h: Tensor, back: Back, tensors: Sequence[Tensor]) -> Again:
        """In closed form: half of the time of autograd, which does not know what is small."""
        return _Known(self, h, back, tensors)


class _Known:
    def __init__(self, look: ByKernels, h: Tensor, back: Back, tensors: Sequence[Tensor]) -> None:
        self.look, self.h, self._back, self._tensors = look, h, back, tensors
        self.seen = look.eyes.look(h)
        self.found = look.say(self.seen)

    def back(self, by_said: Tensor, by_score: Tensor, onward: Onward) -> Tensor:
        seen, look, tau = self.seen, self.look, self.found.tau
        ((_, by_tau),) = onward(self.h, tau)
        by_scaled = by_score
        if look.leak > 0:  # of log p - log(1 - p) where p = (1 - ε) σ(s)
            leave = (-seen.delta * seen.inverse).sigmoid()
            by_scaled = by_score * leave / (look.leak + (1 - look.leak) * leave)
        if look.step_size is None and by_tau is not None:
            by_scaled = torch.addcmul(by_scaled, by_tau, tau - tau * tau)
        given = (by_said, by_scaled * seen.inverse, by_scaled * seen.delta)
        by_h, found = look.eyes.look_back(self.h, seen, *given)
        for tensor, gradient in zip(self._tensors, found, strict=True):
            self._back.add(tensor, gradient)
        return self._back.with_step(by_h)
