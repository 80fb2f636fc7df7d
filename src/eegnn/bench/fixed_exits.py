"""A model with exits whose units leave when they are told to, so that its time can be foreseen."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from eegnn.graph import Adjacency
from eegnn.nn.exit_loop import run
from eegnn.nn.exit_model import ExitModel
from eegnn.nn.exits import Exits


class StatedExits:
    """Predictions of a model with stated exits.

    Args:
        model: is put into evaluation mode.
        x, adj: the graph, or graphs.
        stated: the exit layer of each unit, ``int64 [U]``, from 1 on.
    """

    def __init__(self, model: ExitModel, x: Tensor, adj: Adjacency, stated: Tensor) -> None:
        self.model, self.x, self.adj, self.stated = model.eval(), x, adj, stated

    @torch.no_grad()
    def __call__(self) -> tuple[Tensor, Exits]:
        """Predict, at the cost of the model's own heads."""
        program, steps = self.model.program(self.adj), 0

        def confidence(h: Tensor, adj: Adjacency) -> Tensor:
            nonlocal steps
            steps += 1
            logits = program.confidence(h, adj)
            go_on = torch.where(self.stated > steps, 1.0, -1.0)
            return torch.stack([go_on, -go_on], dim=1).to(logits)

        stated = replace(program, confidence=confidence)
        return run(stated, self.model.encoder(self.x), self.adj)
