r"""Graph neural ODEs of fixed depth: what they share, and the explicit Euler method.

A model without exits that takes :math:`L` steps of size :math:`\varepsilon`. Most of them are
:math:`\mathbf{H} \leftarrow \mathbf{H} + \varepsilon\,\mathrm{step}(\mathbf{H})` with a step that
:class:`~eegnn.EarlyExit` can repeat as well.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Unpack

import torch
from torch import Tensor, nn

from eegnn import _check
from eegnn.graph import Adjacency
from eegnn.nn.exits import Exits
from eegnn.nn.model import GraphModel, Shared
from eegnn.nn.pooling import POOLS
from eegnn.nn.steps import of_layer
from eegnn.typing import Level, Step


class ODEModel(GraphModel):
    """Encoder → ``num_layers`` steps of one size → (pool) → decoder.

    A subclass says how to take the steps, in :meth:`integrate`.

    Args:
        in_channels, hidden_channels, out_channels, num_layers, level: see
            :class:`~eegnn.nn.model.GraphModel`, as for ``**kwargs``.
        step_size: of each step.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int,
        level: Level,
        *,
        step_size: float,
        **kwargs: Unpack[Shared],
    ) -> None:
        super().__init__(in_channels, hidden_channels, out_channels, num_layers, level, **kwargs)
        self.step_size = _check.number("step_size", step_size, 0)
        if step_size == 0:
            raise ValueError("step_size must be above 0, or nothing ever changes")

    @abstractmethod
    def integrate(self, h: Tensor, adj: Adjacency, num_steps: int) -> Tensor:
        """Take the first ``num_steps`` steps from ``h`` ``[n, m']``; return what is decoded."""

    def evolve(
        self,
        h: Tensor,
        adj: Adjacency,
        edge_attr: Tensor | None = None,
        *,
        max_layers: int | None = None,
        exit_threshold: float | None = None,
        sample: bool | None = None,
    ) -> tuple[Tensor, Exits]:
        """Take all steps and decode; everyone leaves at the end."""
        limit = self.fixed_depth(max_layers, exit_threshold, sample)
        h = self.integrate(h, adj, limit)
        units = h if self.level == "node" else POOLS[self.pool](h, adj)
        return self.decoder(units), Exits.all_at(limit, self.num_layers, units, self.step_size)


class EulerModel(ODEModel):
    r"""The explicit Euler method, :math:`\mathbf{H} \leftarrow \mathbf{H} + \varepsilon\,
    \mathrm{step}(\mathbf{H})`.

    Args:
        make_step: makes a step, called as ``step(h, adj) → Δh``; a subclass gives it.
        in_channels, hidden_channels, out_channels, num_layers, level: see
            :class:`~eegnn.nn.model.GraphModel`, as for ``**kwargs``.
        step_size: :math:`\varepsilon`.
        shared: one step for all layers, or one for each.
    """

    def __init__(
        self,
        make_step: Callable[[], nn.Module],
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int,
        level: Level,
        *,
        step_size: float,
        shared: bool,
        **kwargs: Unpack[Shared],
    ) -> None:
        super().__init__(
            in_channels,
            hidden_channels,
            out_channels,
            num_layers,
            level,
            step_size=step_size,
            **kwargs,
        )
        count = 1 if _check.boolean("shared", shared) else num_layers
        self.steps = Steps(make_step() for _ in range(count))

    def bound_steps(self, h: Tensor) -> Sequence[Step]:
        """Return the steps for a forward pass that starts from ``h``."""
        return list(self.steps)

    def integrate(self, h: Tensor, adj: Adjacency, num_steps: int) -> Tensor:
        """Add ε·step(H) as often as asked."""
        steps = self.bound_steps(h)
        for layer in range(num_steps):
            step = of_layer(steps, layer)
            h = torch.add(h, step(h, adj), alpha=self.step_size)
        return h


class Steps(nn.ModuleList):
    """Steps that are drawn anew together."""

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        for step in self:
            step.reset_parameters()  # type: ignore[operator]
