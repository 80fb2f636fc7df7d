"""The books of the exit loop: who has left, when, after what time, with what."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from eegnn.nn.exits import Exits


class Ledger:
    """Keeps a row for each unit.

    Args:
        num_units: how many there are.
        limit: steps after which everyone leaves.
        like: a tensor whose dtype and device the books take.
    """

    def __init__(self, num_units: int, limit: int, like: Tensor) -> None:
        self.limit = limit
        self.left = torch.zeros(num_units, dtype=torch.bool, device=like.device)
        self.layer = torch.full((num_units,), limit, device=like.device)
        self._num_units = num_units
        self.log_stay = like.new_zeros(num_units)
        self.time = like.new_zeros(num_units)
        self._tau: list[Tensor] = []
        self._state: Tensor | None = None

    def survive(self, score: Tensor) -> Tensor:
        """Add a decision with log-odds ``score``; return the log-probability of being here yet."""
        self.log_stay = self.log_stay + logsigmoid(score)
        return self.log_stay

    def decide(self, layer: int, leave: Tensor, state: Tensor | None = None) -> None:
        """Note that these units want to leave at this layer, and what they take with them."""
        now = leave & ~self.left
        self.left = self.left | now
        self.layer = self.layer.masked_fill(now, layer)
        if state is None:
            return
        if self._state is None:
            self._state = torch.zeros_like(state)
        self._state = torch.where(now.unsqueeze(-1), state, self._state)

    def advance(self, tau: Tensor) -> None:
        """Note the step sizes of a step about to be taken."""
        tau = tau.detach()
        self.time = self.time + tau.masked_fill(self.left, 0.0)
        self._tau.append(tau)

    def close(self, last: Tensor) -> Tensor:
        """Whoever is here leaves with the state ``last``; return the state of every unit."""
        if self._state is None:
            return last
        return torch.where(self.left.unsqueeze(-1), self._state, last)

    def exits(self, num_layers: int, survival: Tensor | None = None) -> Exits:
        """Return what happened.

        Args:
            num_layers: the budget, of which ``cost`` is a share.
            survival: ``[steps, U]``, the probability of taking each step; then ``cost`` is the
                expected share, with gradient, instead of the share that was used.
        """
        steps = self.layer.to(self.time.dtype) if survival is None else survival.sum(0)
        tau = torch.stack(self._tau) if self._tau else self.time.new_zeros(0, self._num_units)
        return Exits(
            layer=self.layer,
            time=self.time,
            tau=tau,
            cost=steps.sum() / max(self._num_units * num_layers, 1),
            num_layers=num_layers,
        )
