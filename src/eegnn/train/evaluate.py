"""A model's score, outputs and exits on a part of a problem."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from eegnn.engine.blocked.block import Blocks
from eegnn.engine.blocked.inference import infer
from eegnn.nn.exits import Exits
from eegnn.nn.model import GraphModel
from eegnn.train.batches import Batches, MiniBatch
from eegnn.train.metrics import score_of


@dataclass(frozen=True)
class Evaluation:
    """Outputs ``[U, C]`` for the units of a part, their labels and exits, and the score.

    All are on the CPU, wherever the model is.
    """

    out: Tensor
    y: Tensor
    layer: Tensor
    time: Tensor
    num_layers: int
    score: float

    @property
    def exits(self) -> Exits:
        """The exits of these units (without the step sizes)."""
        steps = self.layer.to(self.time.dtype)
        return Exits(
            self.layer,
            self.time,
            self.time.new_zeros(0, self.time.numel()),
            steps.sum() / max(self.num_layers * steps.numel(), 1),
            self.num_layers,
        )


def evaluate(
    model: GraphModel, batches: Batches, parts: Sequence[str], **knobs: Any
) -> dict[str, Evaluation]:
    """Evaluate parts of a problem; a single graph is passed through the model once.

    Ranks share the batches, and each gets the outputs of all: batches are those of a single
    process, and so are the outputs, bit by bit. The knobs are those of
    :meth:`~eegnn.nn.model.GraphModel.predict`.
    """
    whole, outputs = batches.whole(), {}
    with batches.compute.autocast():
        if whole is not None:
            out, exits = predict_batch(model, whole, batches.blocks, **knobs)
            for name in parts:
                outputs[name] = [_select(batches.part(name)[0], out, exits)]
        else:
            for name in parts:
                outputs[name] = [
                    _select(batch, *predict_batch(model, batch, **knobs))
                    for batch in batches.part(name)
                ]
    return {name: _evaluation(model, batches, outputs[name]) for name in parts}


def predict_batch(
    model: GraphModel, batch: MiniBatch, blocks: Blocks | None = None, **knobs: Any
) -> tuple[Tensor, Exits]:
    """Return ``model.predict`` of all units of a batch, computed block by block if it is cut."""
    if blocks is None:
        return model.predict(batch.x, batch.adj, batch.edge_attr, **knobs)
    return infer(model, batch.x, blocks, batch.edge_attr, **knobs)


def _select(batch: MiniBatch, out: Tensor, exits: Exits) -> tuple[Tensor, ...]:
    """Outputs, labels, exit layers and exit times of the units with a score, on the CPU."""
    select = batch.select
    found = select(out), batch.labels, select(exits.layer), select(exits.time)
    return tuple(values.cpu() for values in found)


def _evaluation(model: GraphModel, batches: Batches, own: list[tuple[Tensor, ...]]) -> Evaluation:
    """Concatenate the outputs of the batches of all ranks, and score them."""
    columns = zip(*batches.ranks.gather_shards(own), strict=True)
    out, y, layer, time = (torch.cat(column) for column in columns)
    problem = batches.problem
    score = score_of(out, y, problem.metric, problem.scale)
    return Evaluation(out.float(), y, layer, time, model.num_layers, score)
