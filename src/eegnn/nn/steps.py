"""What the exit loop takes as a step: PyG convolutions, plain functions, one or one a layer."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn
from torch_geometric.nn import MessagePassing
from torch_geometric.nn import Sequential as PyGSequential

from eegnn import _check
from eegnn.graph import Adjacency
from eegnn.nn.activations import ACTIVATIONS
from eegnn.nn.edge_mask import convolutions, messages_masked
from eegnn.typing import Step


class ConvStep(nn.Module):
    r"""Make a PyG convolution, or a network of them, a step:
    :math:`\Delta\mathbf{H} = \sigma(\mathrm{conv}(\mathbf{H}))`.

    Args:
        conv: a module called as ``conv(h, edge_index)`` that keeps the width of ``h``. It is also
            given ``edge_attr`` and ``edge_weight`` where there are some.
        activation: :math:`\sigma`, a name from :data:`eegnn.nn.activations.ACTIVATIONS`.
    """

    def __init__(self, conv: nn.Module, activation: str = "identity") -> None:
        super().__init__()
        self.conv = conv
        self.activation = _check.choice("activation", activation, tuple(ACTIVATIONS))
        for part in convolutions(conv):
            part.explain = False  # a mask in the order of the caller's edges comes by the graph
        self._inputs = _inputs(conv)

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        self.conv.reset_parameters()  # type: ignore[operator]

    def bind(self, adj: Adjacency, edge_attr: Tensor | None = None) -> Step:
        """Bring edge features into the order of ``adj.edge_index``, once for a forward pass."""
        if edge_attr is None:
            return self
        self._check_takes("edge_attr")
        features = adj.edge_features(edge_attr)

        def step(h: Tensor, part: Adjacency) -> Tensor:
            return self(h, part, features if part is adj else _of_part(features, adj, part))

        return step

    def forward(self, h: Tensor, adj: Adjacency, edge_attr: Tensor | None = None) -> Tensor:
        """Return ΔH, the shape of ``h``; ``edge_attr`` is in the order of ``adj.edge_index``."""
        inputs = {}
        if edge_attr is not None:
            inputs["edge_attr"] = edge_attr
        if adj.edge_weight is not None:
            self._check_takes("edge_weight")
            inputs["edge_weight"] = adj.edge_weight
        with messages_masked(self.conv, adj):
            out = self.conv(h, adj.edge_index, **inputs)
        return ACTIVATIONS[self.activation](out)

    def _check_takes(self, name: str) -> None:
        if name not in self._inputs:
            raise ValueError(f"{name} was given, but {type(self.conv).__name__} does not take it")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.conv!r}, activation={self.activation!r})"


class FunctionStep(nn.Module):
    """Make a plain function ``(h, adj) → Δh`` a step.

    Args:
        function: the function.
    """

    def __init__(self, function: Step) -> None:
        super().__init__()
        self.function = function

    def forward(self, h: Tensor, adj: Adjacency) -> Tensor:
        """Return ΔH, the shape of ``h``."""
        return self.function(h, adj)

    def __repr__(self) -> str:
        name = getattr(self.function, "__name__", repr(self.function))
        return f"{type(self).__name__}({name})"


def _of_part(features: Tensor, adj: Adjacency, part: Adjacency) -> Tensor:
    """Return the edge features of some graphs of a batch."""
    assert part.entries is not None
    if adj.listed is None:
        return features.index_select(0, part.entries)
    number = adj.listed.cumsum(0) - 1
    return features[number[part.entries][part.listed]]


def as_steps(step: Any, num_layers: int) -> Any:
    """Return a step, or a list of ``num_layers`` of them, as modules."""
    if isinstance(step, Sequence | nn.ModuleList):
        if len(step) != num_layers:
            raise ValueError(f"step must be one step or num_layers={num_layers}, got {len(step)}")
        return nn.ModuleList(_as_step(one) for one in step)
    return _as_step(step)


def _as_step(step: Any) -> Any:
    if not callable(step):
        raise TypeError(f"step must be callable as step(h, adj), got {type(step).__name__}")
    if not isinstance(step, nn.Module):
        return FunctionStep(step)
    takes_edges = isinstance(step, MessagePassing) or "edge_index" in _inputs(step)
    return ConvStep(step) if takes_edges and not hasattr(step, "bind") else step


def _inputs(module: nn.Module) -> list[str]:
    """Return the names of the arguments with which a module is called."""
    if isinstance(module, PyGSequential):
        return list(module.signature.param_dict)
    return list(inspect.signature(module.forward).parameters)
