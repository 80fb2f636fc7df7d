"""What the classic models share: one layer after the other, to a fixed depth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

from torch import Tensor, nn

from eegnn import _check
from eegnn.graph import Adjacency
from eegnn.nn.dropout import Dropout
from eegnn.nn.fixed_depth import FixedDepthModel
from eegnn.nn.program import of_layer
from eegnn.nn.sas_conv import NORMS, NormLayer


@dataclass(eq=False, repr=False)
class LayeredModel(FixedDepthModel):
    r"""Encoder → layers → decoder.

    .. math::
        \mathbf{H}^{l+1} = [\mathbf{H}^l + {}]\; \mathrm{dropout}\bigl(\mathrm{norm}\bigl(
        \sigma(\mathrm{conv}^l(\mathbf{H}^l))\bigr)\bigr)

    By default with neither residual connection, normalisation nor dropout, as the paper compares.
    A subclass gives the class of its steps :math:`\sigma\circ\mathrm{conv}`.

    Args:
        residual: add the input of a layer to its output.
        shared: one layer, with its normalisation, repeated; or one for each :math:`l`.
        conv_norm: ``"layer"``, ``"batch"`` or ``None``.
        conv_dropout: dropout in each layer.
        activation: :math:`\sigma`, a name from :data:`eegnn.nn.activations.ACTIVATIONS`.
    """

    _: KW_ONLY
    residual: bool = False
    shared: bool = False
    conv_norm: NormLayer | None = None
    conv_dropout: float = 0.0
    activation: str = "relu"

    step: ClassVar[Callable[..., nn.Module]]  #: makes a step of a width and an activation

    def __post_init__(self) -> None:
        super().__post_init__()
        count = 1 if self.shared else self.num_layers
        self.layers = nn.ModuleList(
            Layer(self.make_step(layer), self.hidden_channels, self.conv_norm, self.conv_dropout)
            for layer in range(1, count + 1)
        )

    def make_step(self, layer: int) -> nn.Module:
        r"""Return a new :math:`\sigma\circ\mathrm{conv}^l`, with layers counted from 1.

        It is called as ``step(h, adj, *inputs)`` with what :meth:`layer_inputs` returns.
        """
        edges = {"edge_dim": self.edge_dim} if self.uses_edges else {}
        return type(self).step(self.hidden_channels, self.activation, **edges)

    def layer_inputs(
        self, h: Tensor, adj: Adjacency, edge_attr: Tensor | None
    ) -> tuple[Tensor, ...]:
        """Return what each layer is given beside states and graph: edge features, if any."""
        edge_attr = edge_features_for(self.edge_dim, adj, edge_attr)
        return () if edge_attr is None else (edge_attr,)

    def run_layers(
        self, h: Tensor, adj: Adjacency, edge_attr: Tensor | None, num_layers: int
    ) -> Tensor:
        """Apply one layer after the other."""
        inputs, layers = self.layer_inputs(h, adj, edge_attr), list(self.layers)
        for layer in range(num_layers):
            out = of_layer(layers, layer)(h, adj, *inputs)
            h = h + out if self.residual else out
        return h


class Layer(nn.Module):
    """A step, then a normalisation, then dropout."""

    def __init__(
        self, step: nn.Module, channels: int, norm: NormLayer | None, dropout: float
    ) -> None:
        super().__init__()
        self.step = step
        self.norm = None if norm is None else NORMS[norm](channels)
        self.dropout = Dropout(dropout)

    def forward(self, h: Tensor, adj: Adjacency, *inputs: Tensor) -> Tensor:
        """Return the shape of ``h``."""
        out = self.step(h, adj, *inputs).to(h.dtype)  # under autocast it may be narrower
        if self.norm is not None:
            out = self.norm(out)
        return self.dropout(out)


def edge_features_for(
    edge_dim: int | None, adj: Adjacency, edge_attr: Tensor | None
) -> Tensor | None:
    """Return ``adj.edge_features(edge_attr)``, which a model with ``edge_dim`` must be given."""
    if edge_attr is not None:
        return adj.edge_features(edge_attr)
    if edge_dim is not None:
        raise ValueError(f"edge_attr is needed: the model has edge_dim={edge_dim}")
    return None


def head_width(channels: int, heads: int) -> int:
    """Return the width of each of ``heads`` attention heads that share ``channels``."""
    _check.integer("heads", heads, at_least=1)
    if channels % heads:
        raise ValueError(f"heads must divide the width {channels}, got {heads}")
    return channels // heads
