"""GCN (Kipf and Welling, 2017)."""

from __future__ import annotations

from torch import Tensor
from torch_geometric.nn import GCNConv

from eegnn._edge_values import widest_float
from eegnn.graph import Adjacency
from eegnn.nn.activations import ACTIVATIONS
from eegnn.nn.steps import ConvStep
from eegnn.zoo.layered import LayeredModel


class GCNStep(ConvStep):
    """One layer of :class:`GCN`, with the weights of PyG's layer."""

    conv: GCNConv

    def __init__(self, channels: int, activation: str = "relu") -> None:
        super().__init__(GCNConv(channels, channels), activation)

    def forward(self, h: Tensor, adj: Adjacency) -> Tensor:  # type: ignore[override]
        """Return the new states ``[n, channels]``, propagated over the CSR structure."""
        z = propagate_with_self_loops(adj, self.conv.lin(h)) + self.conv.bias
        return ACTIVATIONS[self.activation](z)


class GCN(LayeredModel):
    r"""Graph convolutional network.

    .. math::
        \mathbf{H}^{l+1} = \sigma\bigl(\tilde{\mathbf D}^{-1/2}\tilde{\mathbf A}
        \tilde{\mathbf D}^{-1/2}\mathbf{H}^l\mathbf{W}^l + \mathbf{b}^l\bigr)

    with self-loops in :math:`\tilde{\mathbf A} = \mathbf{A} + \mathbf{I}`.
    """

    step = GCNStep
    supports_edge_weight = True
    supports_directed = True


def propagate_with_self_loops(adj: Adjacency, x: Tensor) -> Tensor:
    r"""Return :math:`\tilde{\mathbf D}^{-1/2}(\mathbf{A} + \mathbf{I})\tilde{\mathbf D}^{-1/2}
    \mathbf{X}`, ``[n, d]``, from the graph without self-loops.
    """
    degree = (adj.weighted_degree + 1).to(widest_float(adj.device))
    scale = degree.rsqrt().to(x.dtype).unsqueeze(-1)
    x = scale * x
    return scale * (adj.propagate(x, "sum") + x)
