"""A model's score, outputs and exits on a part of a problem."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from eegnn.engine.blocked.inference import infer
from eegnn.nn.exits import Exits
from eegnn.nn.model import GraphModel
from eegnn.train.batches import Batches, Units
from eegnn.train.metrics import score_of


@dataclass(frozen=True)
class Evaluation:
    """Outputs ``[U, C]`` for the units of a part, their labels and exits, and the score."""

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

    One that is cut into blocks goes through it block by block, with the same result.
    Ranks share the batches, and each gets the outputs of all: batches are those of a single
    process, and so are the outputs, bit by bit.

    Args:
        model: the model, the same on all ranks.
        batches: the problem.
        parts: names of parts.
        knobs: of :meth:`~eegnn.nn.model.GraphModel.predict`.
    """
    whole = batches.whole()
    if whole is not None:
        if batches.blocks is None:
            done = model.predict(whole.x, whole.adj, whole.edge_attr, **knobs)
        else:
            done = infer(model, whole.x, batches.blocks, whole.edge_attr, **knobs)
        return {name: _joined([_answers(batches.part(name)[0], *done)], batches) for name in parts}
    return {
        name: _joined(
            [
                _answers(units, *model.predict(units.x, units.adj, units.edge_attr, **knobs))
                for units in batches.part(name)
            ],
            batches,
        )
        for name in parts
    }


class _Answers(NamedTuple):
    """Of one batch, for the units that count."""

    out: Tensor
    y: Tensor
    layer: Tensor
    time: Tensor
    num_layers: int


def _answers(units: Units, out: Tensor, exits: Exits) -> _Answers:
    return _Answers(
        units.of(out),
        units.labels,
        units.of(exits.layer),
        units.of(exits.time),
        exits.num_layers,
    )


def _joined(own: list[_Answers], batches: Batches) -> Evaluation:
    problem, done = batches.problem, batches.ranks.collect(own)
    out, y = torch.cat([d.out for d in done]).float(), torch.cat([d.y for d in done])
    return Evaluation(
        out=out,
        y=y,
        layer=torch.cat([d.layer for d in done]),
        time=torch.cat([d.time for d in done]),
        num_layers=done[0].num_layers,
        score=score_of(out, y, problem.metric, problem.scale),
    )
