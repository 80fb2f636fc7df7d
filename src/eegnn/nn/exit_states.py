"""The states with which units leave the exit loop."""

from __future__ import annotations

import torch
from torch import Tensor

from eegnn._tracing import is_traced
from eegnn.typing import Readout


class ExitStates:
    """Keeps the state of each unit after the step with which it leaves.

    Autograd and a traced program need the states of every step, from which :meth:`gather` takes
    those at the exits. Otherwise they are written one after the other as units leave.

    Args:
        num_units: how many units there are.
        readout: without gradients, decodes states before they are written.

    Attributes:
        keeps_all: whether the states of every step are kept.
    """

    def __init__(self, num_units: int, readout: Readout | None = None) -> None:
        self.num_units, self.readout = num_units, readout
        self.keeps_all = torch.is_grad_enabled() or is_traced()
        self._states: list[Tensor] = []  # after each step if all are kept; else at the exits

    def append(self, state: Tensor) -> None:
        """Keep the states ``[num_units, m']`` of all units after one more step."""
        self._states.append(state)

    def write(self, units: Tensor, state: Tensor, rows: Tensor) -> None:
        """Keep ``state[rows]``, the states with which the units ``int64 [k]`` leave."""
        if self._states and not rows.numel():
            return
        found = state.index_select(0, rows)
        if self.readout is not None:
            found = self.readout(found)
        if not self._states:
            self._states = [found.new_empty(self.num_units, found.size(1))]
        self._states[0].index_copy_(0, units, found)

    def gather(self, layer: Tensor) -> Tensor:
        """Return the states ``[num_units, m']`` after the steps ``layer`` with which units left.

        Units are sorted by their exits, so that each step gives its rows at once: with gradients,
        a fifth of the time of one ``torch.where`` a step, unless the compiler fuses these.
        """
        if not self.keeps_all:
            return self._states[0]
        if is_traced():
            found = self._states[0]
            for number, state in enumerate(self._states[1:], start=2):
                found = torch.where((layer == number).unsqueeze(-1), state, found)
            return found
        layer, order = layer.sort()
        steps = torch.arange(len(self._states), device=layer.device)
        # The one number for which a training step waits for a GPU; bincount would wait too.
        ends = torch.searchsorted(layer, steps + 1, right=True).tolist()
        rows = zip(self._states, order.tensor_split(ends[:-1]), strict=True)
        found = torch.cat([state.index_select(0, index) for state, index in rows])
        return torch.empty_like(found).index_copy(0, order, found)
