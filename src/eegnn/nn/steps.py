"""PyG convolutions and plain functions as steps of the exit loop."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn

from eegnn import _check
from eegnn.graph import Adjacency
from eegnn.nn.activations import ACTIVATIONS


class ConvStep(nn.Module):
    r"""Make a PyG convolution a step: :math:`\Delta\mathbf{H} = \sigma(\mathrm{conv}(\mathbf{H}))`.

    Args:
        conv: a module called as ``conv(h, edge_index)`` that keeps the width of ``h``.
        activation: :math:`\sigma`, a name from :data:`eegnn.nn.activations.ACTIVATIONS`.
    """

    def __init__(self, conv: nn.Module, activation: str = "identity") -> None:
        super().__init__()
        self.conv = conv
        self.activation = _check.choice("activation", activation, tuple(ACTIVATIONS))

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        self.conv.reset_parameters()  # type: ignore[operator]

    def forward(self, h: Tensor, adj: Adjacency) -> Tensor:
        """Return ΔH, the shape of ``h``."""
        return ACTIVATIONS[self.activation](self.conv(h, adj.edge_index))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.conv!r}, activation={self.activation!r})"


class FunctionStep(nn.Module):
    """Make a plain function ``(h, adj) → Δh`` a step.

    Args:
        function: the function.
    """

    def __init__(self, function: Callable[[Tensor, Adjacency], Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, h: Tensor, adj: Adjacency) -> Tensor:
        """Return ΔH, the shape of ``h``."""
        return self.function(h, adj)

    def __repr__(self) -> str:
        name = getattr(self.function, "__name__", repr(self.function))
        return f"{type(self).__name__}({name})"
