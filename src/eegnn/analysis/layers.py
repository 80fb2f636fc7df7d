"""What a model would predict after every step, and who would still be there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from eegnn.graph import Adjacency
from eegnn.nn.early_exit import EarlyExit
from eegnn.nn.model import GraphModel
from eegnn.train.batches import Batches


@dataclass(frozen=True)
class LayerOutputs:
    r"""The outputs of every unit after every step, had nobody left.

    Attributes:
        out: ``[L, U, C]``, what is decoded from the states after 1 … L steps.
        log_stay: ``[L, U]``, :math:`\log\prod_{k\le l} \sigma(\delta^k)`, the log-probability of
            going on after each decision. ``None`` for a model without exits.
        own_out: ``[U, C]``, the prediction by the model's own rule.
        own_layer: ``int64 [U]``, the exit layer by that rule, 1 … L.
        replayable: whether leaving changes nobody's states, so that any exit rule can be applied
            to ``out`` afterwards. It is not with ``after_exit="freeze"`` for nodes.
    """

    out: Tensor
    log_stay: Tensor | None
    own_out: Tensor
    own_layer: Tensor
    replayable: bool = True

    @property
    def num_layers(self) -> int:
        """The budget L."""
        return self.out.size(0)

    @property
    def num_units(self) -> int:
        """The number of units U."""
        return self.out.size(1)

    def at(self, layer: Tensor) -> Tensor:
        """Outputs ``[U, C]`` of units that leave after ``layer`` ``[U]`` steps, 1 … L."""
        return self.out[layer - 1, torch.arange(self.num_units, device=layer.device)]

    def of(self, index: Tensor | None) -> LayerOutputs:
        """The same of some units; ``None`` for all."""
        if index is None:
            return self
        return LayerOutputs(
            self.out[:, index],
            None if self.log_stay is None else self.log_stay[:, index],
            self.own_out[index],
            self.own_layer[index],
            self.replayable,
        )


def has_exits(model: GraphModel) -> bool:
    """Whether a model's ``loop`` is an :class:`~eegnn.EarlyExit`."""
    return isinstance(getattr(model, "loop", None), EarlyExit)


def outputs_by_layer(
    model: GraphModel,
    x: Tensor | None,
    edge_index: Tensor | Adjacency,
    edge_attr: Tensor | None = None,
    batch: Tensor | None = None,
) -> LayerOutputs:
    """Decode the states after every step, in evaluation mode without gradients.

    A model with exits (:func:`has_exits`) passes through its layers twice, once with everyone and
    once by its own rule; a model of fixed depth is run once for each depth.

    Args:
        model, x, edge_index, edge_attr, batch: as in
            :meth:`~eegnn.nn.model.GraphModel.predict`.
    """
    inputs = (x, edge_index, edge_attr, batch)
    loop = getattr(model, "loop", None)
    if not isinstance(loop, EarlyExit):
        depths = [
            model.predict(*inputs, max_layers=layer) for layer in range(1, model.num_layers + 1)
        ]
        own_out, own = depths[-1]
        return LayerOutputs(torch.stack([out for out, _ in depths]), None, own_out, own.layer)

    found: list[tuple[Tensor, Tensor]] = []

    def follow(loop: EarlyExit, given: tuple[Any, ...]) -> None:
        found.append(loop.trace(*given))

    # The hook sees what the model hands to its loop, and runs inside `predict`: no gradients, no
    # dropout, inputs checked.
    handle = loop.register_forward_pre_hook(follow)
    try:
        own_out, own = model.predict(*inputs)
    finally:
        handle.remove()
    replayable = loop.level == "graph" or loop.after_exit == "evolve"
    return LayerOutputs(*found[0], own_out, own.layer, replayable)


def outputs_by_part(
    model: GraphModel, batches: Batches, parts: Sequence[str]
) -> dict[str, tuple[LayerOutputs, Tensor]]:
    """:func:`outputs_by_layer` of the units of each part of a problem, and their labels.

    A single graph is passed through the model once for all parts.
    """
    whole = batches.whole()
    if whole is not None:
        everyone = outputs_by_layer(model, whole.x, whole.adj, whole.edge_attr)
        picked = {name: batches.part(name)[0] for name in parts}
        return {name: (everyone.of(units.index), units.labels) for name, units in picked.items()}
    return {
        name: (
            _side_by_side(
                [outputs_by_layer(model, u.x, u.adj, u.edge_attr) for u in batches.part(name)]
            ),
            torch.cat([units.labels for units in batches.part(name)]),
        )
        for name in parts
    }


def _side_by_side(found: Sequence[LayerOutputs]) -> LayerOutputs:
    survival = [one.log_stay for one in found if one.log_stay is not None]
    return LayerOutputs(
        torch.cat([one.out for one in found], dim=1),
        torch.cat(survival, dim=1) if survival else None,
        torch.cat([one.own_out for one in found]),
        torch.cat([one.own_layer for one in found]),
        found[0].replayable,
    )
