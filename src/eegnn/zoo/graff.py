"""GRAFF (Di Giovanni, Rowbottom et al., TMLR 2023): a gradient flow, with symmetric weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Literal

import torch
from torch import Tensor, nn

from eegnn import _check
from eegnn.graph import Adjacency
from eegnn.nn.activations import ACTIVATIONS
from eegnn.nn.weights import Symmetric
from eegnn.typing import Step
from eegnn.zoo.ode import EulerModel

WStyle = Literal["diag_dom", "sum"]
OmegaStyle = Literal["diag", "zero"]


class GRAFFStep(nn.Module):
    r"""The right-hand side of GRAFF.

    .. math::
        \Delta\mathbf{H} = \sigma\bigl(\mathbf{\bar A}\mathbf{H}\mathbf{W}_s -
        \mathbf{H}\mathbf{\Omega}_s \;[{} + \mathbf{S}]\bigr), \qquad
        \mathbf{\bar A} = \mathbf{D}^{-1/2}\mathbf{A}\mathbf{D}^{-1/2}

    Before :math:`\sigma` stands :math:`-\tfrac12\nabla E` of the energy :math:`E(\mathbf{H}) =
    \sum_i\langle\mathbf{h}_i, \mathbf{\Omega}_s\mathbf{h}_i\rangle - \sum_{ij}\bar a_{ij}
    \langle\mathbf{h}_i, \mathbf{W}_s\mathbf{h}_j\rangle - 2\langle\mathbf{H}, \mathbf{S}\rangle`,
    which therefore never increases along the flow wherever :math:`z\,\sigma(z) \geq 0`.

    Args:
        channels: width :math:`m'`.
        w_style: :math:`\mathbf{W}_s`: ``"diag_dom"`` for the diagonally dominant form of
            :class:`~eegnn.nn.weights.Symmetric` (``storage="paper"``), ``"sum"`` for
            :math:`(\mathbf{W} + \mathbf{W}^\top)/2`.
        omega_style: :math:`\mathbf{\Omega}_s`: ``"diag"`` for a diagonal, drawn from
            :math:`[-1, 1]`, or ``"zero"``.
        activation: :math:`\sigma`, a name from :data:`eegnn.nn.activations.ACTIVATIONS`.
    """

    def __init__(
        self,
        channels: int,
        w_style: WStyle = "diag_dom",
        omega_style: OmegaStyle = "diag",
        activation: str = "relu",
    ) -> None:
        super().__init__()
        self.channels = _check.integer("channels", channels, at_least=1)
        self.w_style = _check.choice("w_style", w_style, ("diag_dom", "sum"))
        self.omega_style = _check.choice("omega_style", omega_style, ("diag", "zero"))
        self.activation = _check.choice("activation", activation, tuple(ACTIVATIONS))
        self.symmetric = HalfSum(channels) if w_style == "sum" else Symmetric(channels, "paper")
        self.omega = nn.Parameter(torch.empty(channels)) if omega_style == "diag" else None
        self._draw_omega()

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        self.symmetric.reset_parameters()
        self._draw_omega()

    def _draw_omega(self) -> None:
        if self.omega is not None:
            nn.init.uniform_(self.omega, -1, 1)

    @property
    def weight(self) -> Tensor:
        r""":math:`\mathbf{W}_s` ``[m', m']``, as used in ``Ā H @ weight``."""
        return self.symmetric()

    def forward(self, h: Tensor, adj: Adjacency, source: Tensor | None = None) -> Tensor:
        """Return ΔH, ``[n, channels]`` as ``h`` and the source."""
        z = adj.propagate(h, "sym") @ self.weight
        if self.omega is not None:
            z = z - h * self.omega
        if source is not None:
            z = z + source
        return ACTIVATIONS[self.activation](z)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.channels}, w_style={self.w_style!r}, "
            f"omega_style={self.omega_style!r})"
        )


@dataclass(eq=False, repr=False)
class GRAFF(EulerModel):
    r"""Gradient Flow Framework: Euler steps of :class:`GRAFFStep`, which has the equation.

    Args:
        source: whether there is a source :math:`\mathbf{S} = \beta\mathbf{H}^0`, with a number
            :math:`\beta` that is learned and starts at 0.
    """

    _: KW_ONLY
    step_size: float = 0.5
    w_style: WStyle = "diag_dom"
    omega_style: OmegaStyle = "diag"
    activation: str = "relu"
    source: bool = False

    step = GRAFFStep

    def __post_init__(self) -> None:
        super().__post_init__()
        self.beta = nn.Parameter(torch.zeros(())) if self.source else None

    def make_step(self) -> GRAFFStep:
        """Return a new right-hand side."""
        return GRAFFStep(self.hidden_channels, self.w_style, self.omega_style, self.activation)

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        super().reset_parameters()
        if self.beta is not None:
            nn.init.zeros_(self.beta)

    def bound_steps(self, h: Tensor) -> Sequence[Step]:
        """Return the steps, which know the source if there is one."""
        if self.beta is None:
            return super().bound_steps(h)
        return [partial(step, source=self.beta * h) for step in self.steps]


class HalfSum(nn.Module):
    r"""A symmetric matrix :math:`(\mathbf{W} + \mathbf{W}^\top)/2` of :math:`m'^2` numbers."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.value = nn.Parameter(torch.empty(channels, channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the weight anew, as Glorot does."""
        nn.init.xavier_uniform_(self.value)

    def forward(self) -> Tensor:
        r"""Return the symmetric matrix :math:`(\mathbf{V} + \mathbf{V}^\top)/2`."""
        return (self.value + self.value.T) / 2
