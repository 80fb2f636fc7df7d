"""What the gradient sees: which decisions learn something from a step of each objective."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from eegnn.data.minesweeper import minesweeper
from eegnn.nn.eegnn import EEGNN
from eegnn.nn.exit_layer import Objective

OBJECTIVES: tuple[Objective, ...] = ("sampled", "expected", "averaged")


@dataclass(frozen=True)
class GradientMap:
    """Gradients of the decisions of one pass.

    Attributes:
        gradient: ``[L, U]``, the size of the gradient of the task loss with respect to the
            confidence of unit ``u`` at layer ``l``.
        layer: ``[U]``, where each unit left.
    """

    gradient: Tensor
    layer: Tensor

    @property
    def silent(self) -> float:
        """The share of decisions that get no gradient at all."""
        return float((self.gradient == 0).float().mean())


def gradient_map(
    objective: Objective,
    size: int = 12,
    num_layers: int = 10,
    continue_bias: float = 0.0,
    seed: int = 0,
) -> GradientMap:
    """Pass a generated Minesweeper board through a new EEGNN once, forward and backward.

    Args:
        objective: of :class:`~eegnn.EarlyExit`.
        size: cells on a side of the board, all of them in the loss.
        num_layers: the budget.
        continue_bias: the start of the heads; 0 is the paper's.
        seed: of the board, the weights and the noise.
    """
    data = minesweeper(size, seed)
    torch.manual_seed(seed)
    model = EEGNN(
        data.num_features, 16, 2, num_layers, objective=objective,
        continue_bias=continue_bias, head_scale=1.0,
    )  # fmt: skip
    decisions: list[Tensor] = []

    def keep(module: torch.nn.Module, inputs: tuple[Tensor, ...], logits: Tensor) -> None:
        logits.retain_grad()
        decisions.append(logits)

    handle = model.loop.confidence.register_forward_hook(keep)  # type: ignore[attr-defined]
    torch.manual_seed(seed)
    out, exits = model(data.x, data.edge_index, return_exits=True)
    handle.remove()
    if model.averages_loss:
        loss = exits.average_loss(cross_entropy, data.y)
    else:
        loss = cross_entropy(out, data.y)
    loss.backward()
    rows = [torch.zeros(len(d)) if d.grad is None else d.grad.norm(dim=1) for d in decisions]
    return GradientMap(torch.stack(rows), exits.layer)
