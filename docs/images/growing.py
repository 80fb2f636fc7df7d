"""Draws ``growing.png``: which cells of a board were read for the answers of three of them.

Run it as ``python docs/images/growing.py``.
"""

from __future__ import annotations

from pathlib import Path

import torch
from matplotlib.figure import Figure

from eegnn import EEGNN, Adjacency
from eegnn.data.minesweeper import minesweeper
from eegnn.source import TensorGraph

SIDE, ASKED = 45, [11 * 45 + 10, 13 * 45 + 33, 34 * 45 + 20]


class Watched(TensorGraph):
    """Notes in which hop each node was read."""

    def __init__(self, x: torch.Tensor, adj: Adjacency) -> None:
        super().__init__(x, adj)
        self.hop, self.reads = torch.full((adj.num_nodes,), float("nan")), 0

    def features(self, nodes: torch.Tensor) -> torch.Tensor:
        if nodes.numel():
            self.hop[nodes] = self.reads
            self.reads += 1
        return super().features(nodes)


def main() -> None:
    """Draw who was read, hop by hop, and the layers at which the three left."""
    torch.manual_seed(75)
    data = minesweeper(SIDE)
    assert data.x is not None
    model = EEGNN(7, 32, 2, 20, continue_bias=None)  # its nodes leave at different layers
    source = Watched(data.x, Adjacency.from_edge_index(data.edge_index, SIDE**2))
    _, exits = model.predict(None, source, nodes=ASKED)
    figure = Figure(figsize=(4.6, 4), layout="constrained")
    axis = figure.subplots()
    axis.set_facecolor("0.93")
    shown = axis.imshow(source.hop.view(SIDE, SIDE), cmap="viridis_r")
    for node, layer in zip(ASKED, exits.layer.tolist(), strict=True):
        axis.text(node % SIDE, node // SIDE, layer, ha="center", va="center", weight="bold")
    axis.set_xticks([])
    axis.set_yticks([])
    touched = exits.touched
    assert touched is not None
    axis.set_title(f"{touched.nodes} of {SIDE**2} cells read for three answers", fontsize=10)
    figure.colorbar(shown, label="hop in which a cell was read")
    figure.savefig(Path(__file__).with_name("growing.png"), dpi=150)


if __name__ == "__main__":
    main()
