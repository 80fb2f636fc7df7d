"""The states of all nodes at every layer, from one forward pass."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from eegnn.graph import Adjacency
from eegnn.nn.early_exit import EarlyExit
from eegnn.nn.model import GraphModel
from eegnn.nn.sas_conv import SASConv
from eegnn.nn.sas_gnn import SASGNN


def states_by_layer(
    model: GraphModel,
    x: Tensor | None,
    edge_index: Tensor | Adjacency,
    edge_attr: Tensor | None = None,
    batch: Tensor | None = None,
) -> list[Tensor]:
    r"""Return :math:`\mathbf{H}^0, \dots, \mathbf{H}^L`, each ``[n, m']``, in evaluation mode.

    In a model with exits nobody leaves, as in :class:`~eegnn.analysis.layers.LayerOutputs`. Where
    autograd is on, the states are nodes of one graph: each can be differentiated by all before it.

    Args:
        model, x, edge_index, edge_attr, batch: as in
            :meth:`~eegnn.nn.model.GraphModel.forward`.

    Raises:
        ValueError: the model is not one state that goes through one layer after the other.
    """
    loop = getattr(model, "loop", None)
    training, found = model.training, list[Tensor]()
    follow = _through_loop(loop, found) if isinstance(loop, EarlyExit) else _steps(model, found)
    model.eval()
    try:
        with follow:
            model(x, edge_index, edge_attr, batch)
    finally:
        model.train(training)
    shape = found[0].shape if found else None
    if len(found) != model.num_layers + 1 or any(h.shape != shape for h in found):
        raise ValueError(
            f"model must take one state through its {model.num_layers} layers, one after the "
            f"other, for its states to be seen, got {model!r}"
        )
    return found


@contextmanager
def _through_loop(loop: EarlyExit, found: list[Tensor]) -> Iterator[None]:
    """Note what the loop makes of the states at each layer, and let nobody leave."""

    def observe(h: Tensor, log_stay: Tensor) -> None:
        found.append(h)

    def stay(loop: EarlyExit, args: tuple[Any, ...], knobs: dict[str, Any]) -> Any:
        return args, {**knobs, "exit_threshold": 1.0, "observe": observe}

    hook = loop.register_forward_pre_hook(stay, with_kwargs=True)
    try:
        yield
    finally:
        hook.remove()


@contextmanager
def _steps(model: GraphModel, found: list[Tensor]) -> Iterator[None]:
    """Note what each step is given, and what the decoder would be given for nodes."""

    def see(module: nn.Module, args: tuple[Any, ...]) -> None:
        if args and isinstance(args[0], Tensor):
            found.append(args[0])

    # What runs of a SASConv is what `bind` makes of it, not a module with hooks.
    convs: list[Any] = list(model.convs) if isinstance(model, SASGNN) else []
    modules = [*getattr(model, "layers", getattr(model, "steps", ())), model.decoder]
    hooks = [module.register_forward_pre_hook(see) for module in modules]
    level, model.level = model.level, "node"  # nothing but the pooling depends on it
    for conv in convs:
        _watch_bound(conv, found)
    try:
        yield
    finally:
        model.level = level
        for hook in hooks:
            hook.remove()
        for conv in convs:
            del conv.bind


def _watch_bound(conv: SASConv, found: list[Tensor]) -> None:
    plain = conv.bind

    def bind(adj: Adjacency, edge_attr: Tensor | None = None) -> Any:
        step = plain(adj, edge_attr)

        def call(h: Tensor, adj: Adjacency) -> Tensor:
            found.append(h)
            return step(h, adj)

        return call

    conv.bind = bind  # type: ignore[method-assign]


def stacked_states(
    model: GraphModel,
    x: Tensor | None,
    edge_index: Tensor | Adjacency,
    edge_attr: Tensor | None = None,
    batch: Tensor | None = None,
) -> Tensor:
    """:func:`states_by_layer` without gradients, ``[L + 1, n, m']``."""
    with torch.no_grad():
        return torch.stack(states_by_layer(model, x, edge_index, edge_attr, batch))
