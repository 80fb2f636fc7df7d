"""Draws ``objectives.png``: which exit decisions learn from the task loss in a training step.

Run it as ``python docs/images/objectives.py [FILE]``.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import torch
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from torch import Tensor
from torch.nn.functional import cross_entropy

from eegnn import EEGNN, Adjacency
from eegnn.data.minesweeper import minesweeper
from eegnn.nn.exit_loop import run
from eegnn.nn.gumbel import continue_score, logistic_noise
from eegnn.nn.program import Program

#: Which state of a unit is decoded: that before the step at which it decided to leave, as the
#: line of Algorithm 1 is printed, or that after it, as the library does.
Reading = Literal["before", "after"]
READINGS: tuple[Reading, ...] = ("before", "after")
_TITLES = {
    "before": "a cell leaves with its state before the step",
    "after": "a cell leaves with its state after the step",
}


@dataclass(frozen=True)
class GradientMap:
    """Gradients of the decisions of one pass."""

    #: ``[L, U]``, the norm of the gradient of the task loss by the confidence logits.
    gradient: Tensor
    layer: Tensor  #: ``[U]``, number of steps in the state that is decoded
    decisions: Tensor  #: ``[U]``, number of decisions of each unit until it left

    @property
    def share_without_gradient(self) -> float:
        """The share of all decisions taken that get no gradient."""
        taken = torch.arange(len(self.gradient)).unsqueeze(1) < self.decisions
        return float((self.gradient[taken] == 0).float().mean())


def gradient_map(
    reading: Reading,
    size: int = 12,
    num_layers: int = 10,
    continue_bias: float | None = None,
    seed: int = 0,
) -> GradientMap:
    """Pass a generated Minesweeper board through a new EEGNN once, forward and backward.

    All ``size · size`` cells are in the loss. ``seed`` is that of board, weights and noise.
    """
    data = minesweeper(size, seed)
    adj = Adjacency.from_edge_index(data.edge_index, data.num_nodes)
    torch.manual_seed(seed)
    model = EEGNN(data.num_features, 16, 2, num_layers, continue_bias=continue_bias)
    logits_by_layer: list[Tensor] = []

    def confidence(h: Tensor, adj: Adjacency) -> Tensor:
        logits = model.loop.confidence(h, adj)
        logits.retain_grad()
        logits_by_layer.append(logits)
        return logits

    program, h = replace(model.program(adj), confidence=confidence), model.encoder(data.x)
    torch.manual_seed(seed)
    if reading == "after":
        out, exits = run(program, h, adj)
        layer = decisions = exits.layer
    else:
        out, layer = _run_before(program, h, adj)
        decisions = (layer + 1).clamp(max=num_layers)
    cross_entropy(out, data.y).backward()
    norms = [
        torch.zeros(len(logits)) if logits.grad is None else logits.grad.norm(dim=1)
        for logits in logits_by_layer
    ]
    return GradientMap(torch.stack(norms), layer, decisions)


def _run_before(program: Program, h: Tensor, adj: Adjacency) -> tuple[Tensor, Tensor]:
    """Algorithm 1 for nodes, decoding the state before the step at which a node decides to leave.

    Return the output ``[n, C]`` and the number of steps in the decoded states ``[n]``.
    """
    state, layer = h, torch.full((h.size(0),), program.num_layers)
    for step in range(program.num_layers):
        delta, inv_temperature = program.look(h, program.units(h, adj), adj)
        drawn = delta + logistic_noise(delta)
        active = layer == program.num_layers
        layer = layer.masked_fill(active & (drawn < 0), step)
        state = torch.where(active.unsqueeze(1), h, state)
        tau = continue_score(drawn, inv_temperature)
        h = h + tau.unsqueeze(-1) * program.step(step)(h, adj)
    state = torch.where((layer == program.num_layers).unsqueeze(1), h, state)
    return program.readout(state), layer


def draw_objectives(path: Path) -> None:
    """Draw the gradients of all decisions on a small board, for both readings of Algorithm 1."""
    maps = {name: gradient_map(name) for name in READINGS}
    highest = max(float(found.gradient.max()) for found in maps.values())
    figure = Figure(figsize=(9, 4.4), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    for axis, (name, found) in zip(axes, maps.items(), strict=True):
        order = found.decisions.argsort(stable=True)
        gradient = found.gradient[:, order]
        image = axis.imshow(
            gradient.where(gradient > 0, float("nan")).numpy(),
            aspect="auto",
            interpolation="nearest",
            cmap="viridis",
            norm=LogNorm(highest * 1e-6, highest),
        )
        last = found.decisions[order].numpy() - 0.5
        axis.step(range(len(order)), last, where="mid", color="red", label="last decision taken")
        axis.set(title=f"{_TITLES[name]}\n{_subtitle(found)}", xlabel="cells, sorted by exit")
    axes[0].set_ylabel("decision before step")
    axes[0].legend(loc="lower right")
    figure.colorbar(image, ax=axes, label="size of the gradient (white: none)", extend="min")
    figure.savefig(path, dpi=110)


def _subtitle(found: GradientMap) -> str:
    percent = round(100 * found.share_without_gradient)
    if percent:
        return f"{percent} % of the decisions taken get no gradient"
    return "every decision taken gets one"


if __name__ == "__main__":
    draw_objectives(Path(*(sys.argv[1:] or [__file__.replace(".py", ".png")])))
