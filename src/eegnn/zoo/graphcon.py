"""GraphCON (Rusch et al., ICML 2022): coupled oscillators, an ODE of second order."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

import torch
from torch import Tensor, nn

from eegnn import _check
from eegnn.graph import Adjacency
from eegnn.zoo.gcn import propagate_with_self_loops
from eegnn.zoo.ode import ODEModel


@dataclass(eq=False, repr=False)
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
        alpha: :math:`\alpha`, the damping.
        gamma: :math:`\gamma`, the frequency of the oscillators.
    """

    _: KW_ONLY
    step_size: float = 1.0
    alpha: float = 1.0
    gamma: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        _check.number("alpha", self.alpha, 0)
        _check.number("gamma", self.gamma, 0)
        self.conv = nn.Linear(self.hidden_channels, self.hidden_channels, bias=False)
        self.residual = nn.Linear(self.hidden_channels, self.hidden_channels)

    def run_layers(
        self, h: Tensor, adj: Adjacency, edge_attr: Tensor | None, num_layers: int
    ) -> Tensor:
        """Update velocities and positions in turn; return the positions."""
        x = y = h
        for _ in range(num_layers):
            propagated = propagate_with_self_loops(adj, x)
            z = torch.addmm(self.residual(x), propagated, self.conv.weight.T)
            force = z.relu() - self.alpha * y - self.gamma * x
            y = torch.add(y, force, alpha=self.step_size)
            x = torch.add(x, y, alpha=self.step_size)
        return x
