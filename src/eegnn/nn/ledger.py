"""The books of the exit loop: who has left, when, after what time, with what."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from eegnn.nn.exits import Exits


class Ledger:
    """Keeps a row for each unit that is still in the computation.

    Units that have left may be dropped from it (:meth:`drop`); what is known of them is put aside
    and comes back in :meth:`close` and :meth:`exits`.

    Args:
        num_units: how many there are.
        limit: steps after which everyone leaves.
        like: a tensor whose dtype and device the books take.
    """

    def __init__(self, num_units: int, limit: int, like: Tensor) -> None:
        self.limit = limit
        self.units = torch.arange(num_units, device=like.device)
        self.left = torch.zeros(num_units, dtype=torch.bool, device=like.device)
        self.layer = torch.full((num_units,), limit, device=like.device)
        self._num_units = num_units
        self.log_stay = like.new_zeros(num_units)
        self.time = like.new_zeros(num_units)
        self._tau: list[Tensor] = []
        self._state: Tensor | None = None
        self._dropped: list[tuple[Tensor, Tensor, Tensor, Tensor]] = []

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
        if torch.is_grad_enabled():
            self._state = torch.where(now.unsqueeze(-1), state, self._state)
        else:  # few leave at a time: copy their rows alone
            rows = now.nonzero().view(-1)
            self._state[rows] = state[rows]

    def advance(self, tau: Tensor) -> None:
        """Note the step sizes of a step about to be taken."""
        tau = tau.detach()
        self.time = self.time + tau.masked_fill(self.left, 0.0)
        if tau.numel() < self._num_units:
            tau = tau.new_zeros(self._num_units).index_copy(0, self.units, tau)
        self._tau.append(tau)

    def worth_dropping(self) -> bool:
        """Whether a quarter of the units here have left: then a smaller graph pays its making."""
        return 4 * int(self.left.sum()) >= self.left.numel()

    def drop(self, keep: Tensor) -> None:
        """Put the other units aside."""
        assert self._state is not None
        gone = ~keep
        self._dropped.append(
            (self.units[gone], self.layer[gone], self.time[gone], self._state[gone])
        )
        self.units, self.layer, self.time = self.units[keep], self.layer[keep], self.time[keep]
        self.left, self.log_stay = self.left[keep], self.log_stay[keep]
        self._state = self._state[keep]

    def close(self, last: Tensor) -> Tensor:
        """Whoever is here leaves with the state ``last``; return the state of every unit."""
        state = last
        if self._state is not None:
            state = torch.where(self.left.unsqueeze(-1), self._state, last)
        if not self._dropped:
            return state
        units, layers, times, states = zip(
            *self._dropped, (self.units, self.layer, self.time, state), strict=True
        )
        order = torch.cat(units).argsort()
        self.units = torch.arange(self._num_units, device=order.device)
        self.layer, self.time = torch.cat(layers)[order], torch.cat(times)[order]
        return torch.cat(states)[order]

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
