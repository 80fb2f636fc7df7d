"""A model with exits whose units leave at given layers, so that its work is known beforehand."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from eegnn.graph import Adjacency
from eegnn.nn.exit_loop import run
from eegnn.nn.exit_model import ExitModel
from eegnn.nn.exits import Exits


@torch.no_grad()
def predict_with_fixed_exits(
    model: ExitModel, x: Tensor, adj: Adjacency, fixed_exit_layer: Tensor
) -> tuple[Tensor, Exits]:
    """Predict with the reference loop. The model's heads are computed, and their answer replaced
    by ``fixed_exit_layer``, the exit layer of each unit, ``int64 [U]``, from 1 on.
    """
    layer, head = 0, model.loop.confidence
    compute = getattr(head, "contrast", head)  # what the loop calls

    def confidence(h: Tensor, adj: Adjacency) -> Tensor:
        nonlocal layer
        layer += 1
        compute(h, adj)
        continues = torch.where(fixed_exit_layer > layer, 1.0, -1.0)
        return torch.stack([continues, -continues], dim=1)

    program = replace(model.eval().program(adj), confidence=confidence)
    return run(program, model.encoder(x), adj)
