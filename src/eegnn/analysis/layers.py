"""What a model would predict after every layer, and the probability of continuing beyond it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from eegnn.graph import Adjacency
from eegnn.nn.evaluation_mode import evaluation_mode
from eegnn.nn.exit_model import ExitModel
from eegnn.nn.model import GraphModel
from eegnn.train.batches import Batches, MiniBatch


@dataclass(frozen=True)
class LayerOutputs:
    r"""The outputs of every unit after every layer, had no unit left before.

    Attributes:
        out: ``[L, U, C]``, what is decoded from the states after 1 … L steps.
        log_stay: ``[L, U]``, :math:`\log\prod_{k\le l} \sigma(\delta^k)`, the log-probability of
            continuing after each decision. ``None`` for a model without exits.
        own_out: ``[U, C]``, the prediction by the model's own exit rule.
        own_layer: ``int64 [U]``, the exit layer by that rule, 1 … L.
        replayable: whether the exit of a unit leaves the states of all others as they are, so that
            any exit rule can be applied to ``out``. Not so with ``after_exit="freeze"`` for nodes.
    """

    out: Tensor
    log_stay: Tensor | None
    own_out: Tensor
    own_layer: Tensor
    replayable: bool = True

    @property
    def num_layers(self) -> int:
        """The number of layers L that a unit may take."""
        return self.out.size(0)

    @property
    def num_units(self) -> int:
        """The number of units U."""
        return self.out.size(1)

    def at(self, layer: Tensor) -> Tensor:
        """Outputs ``[U, C]`` of units that leave after ``layer`` ``[U]`` steps, 1 … L."""
        return self.out[layer - 1, torch.arange(self.num_units, device=layer.device)]

    def cpu(self) -> LayerOutputs:
        """Return the same on the CPU, outputs at least in single precision."""
        full = torch.promote_types(self.out.dtype, torch.float32)
        log_stay = None if self.log_stay is None else self.log_stay.cpu()
        own = (self.own_out.cpu().to(full), self.own_layer.cpu())
        return LayerOutputs(self.out.cpu().to(full), log_stay, *own, self.replayable)

    def select(self, index: Tensor | None) -> LayerOutputs:
        """Return the outputs of some units; ``None`` for all."""
        if index is None:
            return self
        log_stay = None if self.log_stay is None else self.log_stay[:, index]
        own = (self.own_out[index], self.own_layer[index])
        return LayerOutputs(self.out[:, index], log_stay, *own, self.replayable)


def outputs_by_layer(
    model: GraphModel,
    x: Tensor | None,
    edge_index: Tensor | Adjacency,
    edge_attr: Tensor | None = None,
    batch: Tensor | None = None,
) -> LayerOutputs:
    """Decode the states after every layer, in evaluation mode without gradients.

    The inputs are those of :meth:`~eegnn.nn.model.GraphModel.predict`. A model with exits runs
    twice, once to the end and once by its own rule; a model of fixed depth once for each depth.
    """
    inputs = (x, edge_index, edge_attr, batch)
    if not isinstance(model, ExitModel):
        depths = range(1, model.num_layers + 1)
        found = [model.predict(*inputs, max_layers=depth) for depth in depths]
        own_out, own = found[-1]
        return LayerOutputs(torch.stack([out for out, _ in found]), None, own_out, own.layer)
    own_out, own = model.predict(*inputs)
    with evaluation_mode(model), torch.no_grad():
        x, adj = model._enter(*inputs)
        out, log_stay = model.loop.trace(model._encode(x), adj, edge_attr, model.decoder)
    replayable = model.level != "node" or model.loop.after_exit == "evolve"
    return LayerOutputs(out, log_stay, own_out, own.layer, replayable)


def outputs_by_part(
    model: GraphModel, batches: Batches, parts: Sequence[str]
) -> dict[str, tuple[LayerOutputs, Tensor]]:
    """:func:`outputs_by_layer` of the units of each part of a problem, and their labels.

    Both are on the CPU. A single graph is passed through the model once for all parts.
    """
    whole = batches.whole()
    if whole is not None:
        outputs = _outputs(model, whole)
        found = {}
        for name in parts:
            part = batches.part(name)[0]
            index = None if part.index is None else part.index.cpu()
            found[name] = outputs.select(index), part.labels.cpu()
        return found
    return {
        name: (
            _concatenate([_outputs(model, batch) for batch in batches.part(name)]),
            torch.cat([batch.labels.cpu() for batch in batches.part(name)]),
        )
        for name in parts
    }


def _outputs(model: GraphModel, batch: MiniBatch) -> LayerOutputs:
    return outputs_by_layer(model, batch.x, batch.adj, batch.edge_attr).cpu()


def _concatenate(outputs: Sequence[LayerOutputs]) -> LayerOutputs:
    log_stay = [one.log_stay for one in outputs if one.log_stay is not None]
    return LayerOutputs(
        torch.cat([one.out for one in outputs], dim=1),
        torch.cat(log_stay, dim=1) if log_stay else None,
        torch.cat([one.own_out for one in outputs]),
        torch.cat([one.own_layer for one in outputs]),
        outputs[0].replayable,
    )
