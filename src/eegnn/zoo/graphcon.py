"""GraphCON (Rusch et al., ICML 2022): coupled oscillators, an ODE of second order."""

from __future__ import annotations

from typing import Unpack

import torch
from torch import Tensor, nn

from eegnn import _check
from eegnn.graph import Adjacency
from eegnn.nn.model import Shared, arguments_in
from eegnn.typing import Level
from eegnn.zoo.ode import ODEModel


class GraphCON(ODEModel):
    r"""Graph-coupled oscillator network over a GCN.

    .. math::
        \mathbf{Y} &\leftarrow \mathbf{Y} + \Delta t\,\bigl(\mathrm{ReLU}(\mathbf{\hat A}\mathbf{X}
        \mathbf{W} + \mathbf{X}\mathbf{R} + \mathbf{b}) - \alpha\mathbf{Y} -
        \gamma\mathbf{X}\bigr) \\
        \mathbf{X} &\leftarrow \mathbf{X} + \Delta t\,\mathbf{Y}, \qquad \mathbf{\hat A} =
        (\mathbf{D} + \mathbf{I})^{-1/2}(\mathbf{A} + \mathbf{I})(\mathbf{D} + \mathbf{I})^{-1/2}

    from :math:`\mathbf{X} = \mathbf{Y} = \mathbf{H}^0`, with the same weights in all steps; what
    is decoded is :math:`\mathbf{X}`. With :math:`\Delta t = \alpha = \gamma = 1` the velocity
    drops out, and it is a GCN with a linear skip connection.

    Args:
        in_channels, hidden_channels, out_channels, num_layers, level: see
            :class:`~eegnn.nn.model.GraphModel`, as for ``**kwargs``.
        step_size: :math:`\Delta t`.
        alpha: :math:`\alpha`, the damping.
        gamma: :math:`\gamma`, the frequency of the oscillators.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 10,
        level: Level = "node",
        *,
        step_size: float = 1.0,
        alpha: float = 1.0,
        gamma: float = 1.0,
        **kwargs: Unpack[Shared],
    ) -> None:
        own = arguments_in(locals())
        super().__init__(
            in_channels,
            hidden_channels,
            out_channels,
            num_layers,
            level,
            step_size=step_size,
            **kwargs,
        )
        self.config |= own
        self.alpha = _check.number("alpha", alpha, 0)
        self.gamma = _check.number("gamma", gamma, 0)
        self.conv = nn.Linear(hidden_channels, hidden_channels, bias=False)
        self.residual = nn.Linear(hidden_channels, hidden_channels)

    def integrate(self, h: Tensor, adj: Adjacency, num_steps: int) -> Tensor:
        """Let velocities and positions take turns; return the positions."""
        x = y = h
        for _ in range(num_steps):
            z = torch.addmm(self.residual(x), smooth(x, adj), self.conv.weight.T)
            force = z.relu() - self.alpha * y - self.gamma * x
            y = torch.add(y, force, alpha=self.step_size)
            x = torch.add(x, y, alpha=self.step_size)
        return x


def smooth(x: Tensor, adj: Adjacency) -> Tensor:
    r"""Return :math:`\mathbf{\hat A}\mathbf{X}`, the propagation of a GCN with its self-loops."""
    scale = (adj.degree + 1).to(x.dtype).rsqrt().unsqueeze(-1)
    scaled = x * scale
    return (adj.propagate(scaled, "sum") + scaled) * scale
