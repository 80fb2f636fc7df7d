"""The states of all nodes after every layer, from one forward pass."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from eegnn.graph import Adjacency
from eegnn.nn.evaluation_mode import evaluation_mode
from eegnn.nn.exit_loop import run
from eegnn.nn.exit_model import ExitModel
from eegnn.nn.fixed_depth import FixedDepthModel
from eegnn.nn.model import GraphModel
from eegnn.nn.sas_gnn import SASGNN


def states_by_layer(
    model: GraphModel,
    x: Tensor | None,
    edge_index: Tensor | Adjacency,
    edge_attr: Tensor | None = None,
    batch: Tensor | None = None,
) -> list[Tensor]:
    r"""Return :math:`\mathbf{H}^0, \dots, \mathbf{H}^L`, each ``[n, m']``, in evaluation mode.

    The inputs are those of :meth:`~eegnn.nn.model.GraphModel.forward`. In a model with exits no
    unit leaves before the end. Where autograd is on, the states belong to one graph of operations:
    each can be differentiated by all before it. A model that does not take one state through one
    layer after the other is refused.
    """
    if model.level == "edge":
        raise ValueError("model must have level='node' or 'graph' for its states to be seen")
    with evaluation_mode(model):
        x, adj = model._enter(x, edge_index, edge_attr, batch)
        states = _states(model, model._encode(x), adj, edge_attr)
    if len(states) != model.num_layers + 1 or any(h.shape != states[0].shape for h in states):
        raise ValueError(
            f"model must take one state through its {model.num_layers} layers, one after the "
            f"other, for its states to be seen, got {model!r}"
        )
    return states


def stacked_states(model: GraphModel, *inputs: Any) -> Tensor:
    """:func:`states_by_layer` of the same inputs without gradients, ``[L + 1, n, m']``."""
    with torch.no_grad():
        return torch.stack(states_by_layer(model, *inputs))


def _states(model: GraphModel, h: Tensor, adj: Adjacency, edge_attr: Tensor | None) -> list[Tensor]:
    states: list[Tensor] = []
    if isinstance(model, ExitModel):
        program = model.program(adj, edge_attr, exit_threshold=1.0)
        run(replace(program, observe=lambda h, log_stay: states.append(h)), h, adj)
    elif isinstance(model, SASGNN):
        program = model.program(adj, edge_attr)
        states.append(h)
        for layer in range(model.num_layers):
            states.append(states[-1] + model.step_size * program.step(layer)(states[-1], adj))
    elif isinstance(model, FixedDepthModel):

        def record(module: nn.Module, args: tuple[Any, ...]) -> None:
            states.extend(arg for arg in args[:1] if isinstance(arg, Tensor))

        layers = getattr(model, "layers", getattr(model, "steps", ()))
        hooks = [layer.register_forward_pre_hook(record) for layer in layers]
        try:
            states.append(model.run_layers(h, adj, edge_attr, model.num_layers))
        finally:
            for hook in hooks:
                hook.remove()
    return states
