"""What the classic models share: one layer after the other, to a fixed depth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Unpack

from torch import Tensor, nn

from eegnn import _check
from eegnn.graph import Adjacency
from eegnn.nn.dropout import Dropout
from eegnn.nn.exits import Exits
from eegnn.nn.model import GraphModel, Shared, arguments_in
from eegnn.nn.pooling import POOLS
from eegnn.nn.sas_conv import NORMS, NormLayer
from eegnn.typing import Level
from eegnn.zoo.edges import edge_features


class LayerArguments(Shared, total=False):
    """Arguments that every layered model takes by name; :class:`LayeredModel` explains them."""

    residual: bool
    shared: bool
    conv_norm: NormLayer | None
    conv_dropout: float
    activation: str


class LayeredModel(GraphModel):
    r"""Encoder → layers → decoder.

    .. math::
        \mathbf{H}^{l+1} = [\mathbf{H}^l + {}]\; \mathrm{dropout}\bigl(\mathrm{norm}\bigl(
        \sigma(\mathrm{conv}^l(\mathbf{H}^l))\bigr)\bigr)

    By default with neither residual connection, normalisation nor dropout, as the paper compares.

    Args:
        make_step: makes :math:`\sigma\circ\mathrm{conv}` from a width and an activation, a module
            called as ``step(h, adj)``, or as ``step(h, adj, edge_attr)`` where there are edge
            features; a subclass gives it.
        in_channels, hidden_channels, out_channels: see :class:`~eegnn.nn.model.GraphModel`.
        num_layers: number of layers :math:`L`.
        level: ``"node"`` or ``"graph"``.
        residual: add the input of a layer to its output.
        shared: one layer, with its normalisation, repeated; or one for each :math:`l`.
        conv_norm: ``"layer"``, ``"batch"`` or ``None``.
        conv_dropout: dropout in each layer.
        activation: :math:`\sigma`, a name from :data:`eegnn.nn.activations.ACTIVATIONS`.
        **kwargs: of :class:`~eegnn.nn.model.GraphModel`.
    """

    def __init__(
        self,
        make_step: Callable[[int, str], nn.Module],
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 10,
        level: Level = "node",
        *,
        residual: bool = False,
        shared: bool = False,
        conv_norm: NormLayer | None = None,
        conv_dropout: float = 0.0,
        activation: str = "relu",
        **kwargs: Unpack[Shared],
    ) -> None:
        own = arguments_in(locals())
        super().__init__(in_channels, hidden_channels, out_channels, num_layers, level, **kwargs)
        self.config |= own
        if self.edge_dim is not None:
            _check.integer("edge_dim", self.edge_dim, at_least=1)
        self.residual = _check.boolean("residual", residual)
        _check.boolean("shared", shared)
        _check.choice("conv_norm", conv_norm, (None, *NORMS))
        _check.number("conv_dropout", conv_dropout, 0, 1)
        self.layers = nn.ModuleList(
            Layer(make_step(hidden_channels, activation), hidden_channels, conv_norm, conv_dropout)
            for _ in range(1 if shared else num_layers)
        )

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        for module in (self.encoder, *self.layers, self.decoder):
            module.reset_parameters()

    def constants(self, h: Tensor, adj: Adjacency, edge_attr: Tensor | None) -> tuple[Tensor, ...]:
        """Return what each layer is given beside ``h`` and ``adj``, here the edge features.

        Args:
            h: initial states.
            adj: the graph.
            edge_attr: edge features.
        """
        if edge_attr is not None:
            return (edge_features(adj, edge_attr),)
        if self.edge_dim is not None:
            raise ValueError(f"edge_attr is needed: the model has edge_dim={self.edge_dim}")
        return ()

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
        """Apply all layers and decode; everyone leaves at the end."""
        limit = self.fixed_depth(max_layers, exit_threshold, sample)
        constants = self.constants(h, adj, edge_attr)
        for number in range(limit):
            layer = self.layers[number if len(self.layers) > 1 else 0]
            out = layer(h, adj, *constants)
            h = h + out if self.residual else out
        units = h if self.level == "node" else POOLS[self.pool](h, adj)
        return self.decoder(units), Exits.all_at(limit, self.num_layers, units)


class Layer(nn.Module):
    """A step, then a normalisation, then dropout.

    Args:
        step: a module called as ``step(h, adj, …)`` that keeps the width of ``h``.
        channels: that width.
        norm: ``"layer"``, ``"batch"`` or ``None``.
        dropout: the probability.
    """

    def __init__(
        self, step: nn.Module, channels: int, norm: NormLayer | None, dropout: float
    ) -> None:
        super().__init__()
        self.step = step
        self.norm = None if norm is None else NORMS[norm](channels)
        self.dropout = Dropout(dropout)

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        for module in (self.step, self.norm):
            if module is not None:
                module.reset_parameters()  # type: ignore[operator]

    def forward(self, h: Tensor, adj: Adjacency, *constants: Tensor) -> Tensor:
        """Return the shape of ``h``."""
        out = self.step(h, adj, *constants).to(h.dtype)  # under autocast it may be narrower
        if self.norm is not None:
            out = self.norm(out)
        return self.dropout(out)


def head_width(channels: int, heads: int) -> int:
    """Return the width of each of ``heads`` attention heads that share ``channels``."""
    _check.integer("heads", heads, at_least=1)
    if channels % heads:
        raise ValueError(f"heads must divide the width {channels}, got {heads}")
    return channels // heads
