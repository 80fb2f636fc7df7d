"""The record of the exit loop: who has left, after how many steps, and with which state."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from eegnn.nn.exits import Exits
from eegnn.typing import Readout


class ExitRecorder:
    """Keeps who has left, after how many steps, and with which state, while the loop runs.

    A backend that drops units on the way calls :meth:`narrow`; all tensors are then of the units
    that remain.

    Args:
        num_units: how many units there are.
        max_layers: steps after which everyone leaves.
        num_layers: the budget, of which the cost is a share.
        like: a tensor whose dtype and device the records take.
        readout: decodes the states of those who leave, so that outputs are kept instead of them;
            without gradients only.

    Attributes:
        num_active: how many have not left; counted without gradients only.
        left: ``bool [U]``, who has left.
        layer: ``int64 [U]``, as in :class:`Exits`.
        log_stay: ``[U]``, the log-probability of going on after all decisions so far.
        tau: the step sizes of each step, ``[num_units]``.
    """

    def __init__(
        self,
        num_units: int,
        max_layers: int,
        num_layers: int,
        like: Tensor,
        readout: Readout | None = None,
    ) -> None:
        self.max_layers, self.num_layers, self.readout = max_layers, num_layers, readout
        self.num_active = num_units
        self.left = torch.zeros(num_units, dtype=torch.bool, device=like.device)
        self.layer = torch.full((num_units,), max_layers, device=like.device)
        self.log_stay = like.new_zeros(num_units)
        self.tau: list[Tensor] = []
        self._states: list[Tensor] = []  # with gradients: after each step; else: at the exits
        self._expected_steps = like.new_zeros(num_units)
        self._num_units = num_units
        self._units: Tensor | None = None  # those that remain; None: all
        self._layers: Tensor | None = None  # the exits of all, once some are final

    def decide(self, delta: Tensor) -> Tensor:
        """Count a decision with log-odds ``delta`` ``[U]`` of continuing; return ``log_stay``."""
        if torch.is_grad_enabled():
            # The step that follows is taken by all who decided to continue before it.
            self._expected_steps = self._expected_steps + self.log_stay.exp()
        self.log_stay = self.log_stay + logsigmoid(delta)
        return self.log_stay

    def step(self, tau: Tensor, leave: Tensor, state: Tensor) -> None:
        """Record a step, and who leaves after it.

        Args:
            tau: ``[U]``, the step sizes.
            leave: ``bool [U]``, who wanted to leave before the step.
            state: ``[U, m']``, the states after the step.
        """
        tau = tau.detach()
        if self._units is not None:
            tau = tau.new_zeros(self._num_units).index_copy_(0, self._units, tau)
        self.tau.append(tau)
        last = len(self.tau) == self.max_layers
        now = ~self.left if last else leave & ~self.left
        self.layer = self.layer.masked_fill(now, len(self.tau))
        self.left = self.left | now
        if torch.is_grad_enabled():
            self._states.append(state)
        else:
            self._keep(now.nonzero().view(-1), state)

    def _keep(self, rows: Tensor, state: Tensor) -> None:
        """Write the states of those who leave, or their outputs, among those of all."""
        self.num_active -= rows.numel()
        if self._states and not rows.numel():
            return
        found = state.index_select(0, rows)
        if self.readout is not None:
            found = self.readout(found)
        if not self._states:
            self._states = [found.new_empty(self._num_units, found.size(1))]
        to = rows if self._units is None else self._units.index_select(0, rows)
        self._states[0].index_copy_(0, to, found)

    def narrow(self, rows: Tensor) -> None:
        """Go on with these units alone, ``int64``; the records of the others are final."""
        self._layers = self._layer_of_all()
        self._units = rows if self._units is None else self._units[rows]
        for name in ("left", "layer", "log_stay"):
            setattr(self, name, getattr(self, name)[rows])

    def finish(self, expected: bool, backend: str = "reference") -> tuple[Tensor, Exits]:
        """Return the states ``[num_units, m']`` with which units left, and their exits.

        Args:
            expected: ``cost`` is the expectation over exits, with gradient.
            backend: what ran the loop.
        """
        layer, tau = self._layer_of_all(), torch.stack(self.tau)
        steps = self._expected_steps if expected else layer.to(tau.dtype)
        cost = steps.sum() / max(steps.numel() * self.num_layers, 1)
        before = torch.arange(len(tau), device=tau.device).unsqueeze(-1) < layer
        time = torch.where(before, tau, 0.0).sum(dim=0)
        state = self._gather(layer) if torch.is_grad_enabled() else self._states[0]
        return state, Exits(layer, time, tau, cost, self.num_layers, backend)

    def _gather(self, layer: Tensor) -> Tensor:
        """Take the state of each unit from the step after which it left.

        Units are sorted by their exits, so that each step gives its rows at once: with gradients,
        a fifth of the time of one ``torch.where`` a step.
        """
        layer, order = layer.sort()
        steps = torch.arange(len(self._states), device=layer.device)
        # The one number for which a training step waits for a GPU; bincount would wait too.
        ends = torch.searchsorted(layer, steps + 1, right=True).tolist()
        rows = zip(self._states, order.tensor_split(ends[:-1]), strict=True)
        found = torch.cat([state.index_select(0, index) for state, index in rows])
        return torch.empty_like(found).index_copy(0, order, found)

    def _layer_of_all(self) -> Tensor:
        """The exits of the units that remain, among those of all."""
        if self._layers is None or self._units is None:
            return self.layer
        return self._layers.index_copy(0, self._units, self.layer)
