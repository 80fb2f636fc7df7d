"""What a model would say at every layer, and who would still be there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from eegnn.graph import Adjacency
from eegnn.nn.answers import MixtureAnswer, StateAnswer, states_alone
from eegnn.nn.early_exit import EarlyExit
from eegnn.nn.exit_layer import Task
from eegnn.nn.mixture import MIXTURES, stopped_log_weights
from eegnn.nn.model import GraphModel
from eegnn.train.batches import Batches


@dataclass(frozen=True)
class LayerOutputs:
    r"""The outputs of every unit at every layer, had nobody been stopped.

    Attributes:
        out: ``[L + 1, U, C]``, what is decoded from the states at layer 0 … L.
        log_stay: ``[L, U]``, :math:`\log\prod_{k\le l} p_k`, the log-probability of going on
            after the decision at layer l: :math:`p = \tau`, or :math:`\sigma(C_0 - C_1)` with
            ``objective="sampled"``. ``None`` for a model without exits.
        own_out: ``[U, C]``, the prediction by the model's own rule.
        own_layer: ``int64 [U]``, the exit layer by that rule.
        task: what the outputs mean; ``None`` where nobody decides by them.
        mixes: whether a unit answers with the mixture of the exits it has passed
            (:class:`~eegnn.nn.answers.MixtureAnswer`), or with its state.
        replayable: whether leaving changes nobody's states, so that any exit rule can be applied
            to ``out`` afterwards. It is not with ``after_exit="freeze"`` for nodes.
    """

    out: Tensor
    log_stay: Tensor | None
    own_out: Tensor
    own_layer: Tensor
    task: Task | None = None
    mixes: bool = False
    replayable: bool = True

    @property
    def num_layers(self) -> int:
        """The budget L."""
        return self.out.size(0) - 1

    @property
    def num_units(self) -> int:
        """The number of units U."""
        return self.out.size(1)

    def at(self, layer: Tensor) -> Tensor:
        """Outputs ``[U, C]``, decoded from the states at ``layer`` ``[U]``."""
        return self.out[layer, torch.arange(self.num_units, device=layer.device)]

    def answer_at(self, layer: Tensor) -> Tensor:
        """What units that leave at ``layer`` ``[U]`` answer, ``[U, C]``."""
        if not self.mixes or self.task is None or self.log_stay is None:
            return self.at(layer)
        log_weight = stopped_log_weights(self.log_stay, layer)
        return MIXTURES[self.task].mean(log_weight, self.out)

    def doubt(self) -> Tensor | None:
        """``[L, U]``, the doubt in what units that leave at each layer answer, see
        :class:`~eegnn.nn.mixture.Mixture`; ``None`` where nothing tells."""
        if self.task is None or self.log_stay is None:
            return None
        answer, found = (MixtureAnswer if self.mixes else StateAnswer)(states_alone, self.task), []
        log_here = torch.zeros_like(self.log_stay[0])
        for out, log_going in zip(self.out, self.log_stay, strict=False):  # nobody leaves at L
            answer.see(out, log_here)
            found.append(answer.doubt())
            answer.pass_by(log_going)
            log_here = log_going
        known = [doubt for doubt in found if doubt is not None]
        return torch.stack(known) if known else None

    def of(self, index: Tensor | None) -> LayerOutputs:
        """The same of some units; ``None`` for all."""
        if index is None:
            return self
        return LayerOutputs(
            self.out[:, index],
            None if self.log_stay is None else self.log_stay[:, index],
            self.own_out[index],
            self.own_layer[index],
            self.task,
            self.mixes,
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
    """Decode the states at every layer, in evaluation mode without gradients.

    A model with exits (:func:`has_exits`) passes through its layers twice, once with everyone and
    once by its own rule; a model of fixed depth is run once for each depth.

    Args:
        model, x, edge_index, edge_attr, batch: as in
            :meth:`~eegnn.nn.model.GraphModel.predict`.
    """
    inputs = (x, edge_index, edge_attr, batch)
    loop = getattr(model, "loop", None)
    if not isinstance(loop, EarlyExit):
        depths = [model.predict(*inputs, max_layers=layer) for layer in range(model.num_layers + 1)]
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
    mixes = loop.answer == "mixture"
    replayable = loop.level == "graph" or loop.after_exit == "evolve"
    return LayerOutputs(*found[0], own_out, own.layer, loop.task, mixes, replayable)


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
        found[0].task,
        found[0].mixes,
        found[0].replayable,
    )
