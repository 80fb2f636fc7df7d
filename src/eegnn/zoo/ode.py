r"""Graph neural ODEs of fixed depth: what they share, and the explicit Euler method.

A model without exits that takes :math:`L` steps of size :math:`\varepsilon`. Most of them are
:math:`\mathbf{H} \leftarrow \mathbf{H} + \varepsilon\,\mathrm{step}(\mathbf{H})` with a step that
:class:`~eegnn.EarlyExit` can repeat as well.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

import torch
from torch import Tensor, nn

from eegnn import _check
from eegnn.graph import Adjacency
from eegnn.nn.encoders import Encoder
from eegnn.nn.fixed_depth import FixedDepthModel
from eegnn.nn.program import of_layer
from eegnn.typing import Step


@dataclass(eq=False, repr=False)
class ODEModel(FixedDepthModel):
    """Encoder → ``num_layers`` steps of one size → (pool) → decoder.

    Args:
        step_size: of each step.
        linear_encoder: start from a linear map of the features, as in the authors' code of these
            models, instead of its ReLU, as in the other models here.
    """

    _: KW_ONLY
    step_size: float = 0.1
    linear_encoder: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.linear_encoder:
            self.encoder = Encoder(self.in_channels, self.hidden_channels, self.dropout, relu=False)
        if _check.number("step_size", self.step_size, 0) == 0:
            raise ValueError("step_size must be above 0, or nothing ever changes")


@dataclass(eq=False, repr=False)
class EulerModel(ODEModel):
    r"""The explicit Euler method, :math:`\mathbf{H} \leftarrow \mathbf{H} + \varepsilon\,
    \mathrm{step}(\mathbf{H})`.

    A subclass gives the step, in :meth:`make_step`.

    Args:
        shared: one step for all layers, or one for each.
    """

    _: KW_ONLY
    shared: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        count = 1 if self.shared else self.num_layers
        self.steps = nn.ModuleList(self.make_step() for _ in range(count))

    @abstractmethod
    def make_step(self) -> nn.Module:
        """Return a new step, called as ``step(h, adj) → Δh``."""

    def bound_steps(self, h: Tensor) -> Sequence[Step]:
        """Return the steps for a forward pass that starts from ``h``."""
        return list(self.steps)

    def run_layers(
        self, h: Tensor, adj: Adjacency, edge_attr: Tensor | None, num_layers: int
    ) -> Tensor:
        """Add ε·step(H) ``num_layers`` times."""
        steps = self.bound_steps(h)
        for layer in range(num_layers):
            step = of_layer(steps, layer)
            h = torch.add(h, step(h, adj), alpha=self.step_size)
        return h
