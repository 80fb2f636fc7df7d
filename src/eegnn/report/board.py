"""A Minesweeper board: true mines, predicted mines and exit layers."""

from __future__ import annotations

from pathlib import Path

from torch import Tensor
from torch_geometric.data import Data

from eegnn.nn.exits import Exits


def draw_board(data: Data, score: Tensor, exits: Exits, path: Path) -> None:
    """Write a picture of three boards: true mines, predicted probability ``score`` ``[n]``, exit
    layer.

    The board is one of :func:`eegnn.data.minesweeper.minesweeper`.
    """
    # pyplot would open windows and change what a notebook draws.
    from matplotlib.figure import Figure

    size = int(data.pos.max()) + 1
    panels = [
        ("Mines", data.y.float(), "Greys", (0, 1), None),
        ("Predicted probability of a mine", score, "Greys", (0, 1), "probability"),
        ("Exit layer", exits.layer.float(), "viridis", (1, exits.num_layers), "steps taken"),
    ]
    figure = Figure(figsize=(16, 5), layout="constrained")
    axes = figure.subplots(1, 3)
    for axis, (title, value, colours, (low, high), label) in zip(axes, panels, strict=True):
        image = axis.imshow(value.view(size, size).numpy(), cmap=colours, vmin=low, vmax=high)
        axis.set(title=title, xticks=[], yticks=[])
        if label:
            figure.colorbar(image, ax=axis, label=label, shrink=0.85)
    figure.savefig(path, dpi=110)
