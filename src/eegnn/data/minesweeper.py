"""Minesweeper boards by the rules of the public data set (Platonov et al., 2023)."""

from __future__ import annotations

import torch
from torch_geometric.data import Data
from torch_geometric.utils import grid, remove_self_loops

from eegnn import _check

HIGHEST_NUMBER = 5  # the public data set merges counts of five and more


def minesweeper(size: int = 100, seed: int = 0) -> Data:
    """Generate a board: find the mines from the numbers on uncovered cells.

    A ``size × size`` grid, each cell joined to its eight neighbours; exactly 20 % of the cells
    are mines. A cell shows its number of neighbouring mines, one-hot in columns 1 … 6 (0, 1, 2, 3,
    4, at least 5); for half of the cells the number is hidden, and column 0 is 1. The label is 1
    for a mine. Half of the mines and half of the other cells are for training, a quarter each for
    validation and test, as in the public splits.

    Returns:
        PyG ``Data`` with ``x [n, 7]``, ``edge_index``, ``y``, the three masks, and ``pos [n, 2]``
        (row and column).
    """
    n = _check.integer("size", size, at_least=2) ** 2
    generator = torch.Generator().manual_seed(seed)
    edge_index, _ = remove_self_loops(grid(size, size)[0])  # by a side or a corner
    y = torch.zeros(n, dtype=torch.int64)
    y[torch.randperm(n, generator=generator)[: n // 5]] = 1

    number = torch.zeros(n, dtype=torch.int64).index_add(0, edge_index[0], y[edge_index[1]])
    column = 1 + number.clamp(max=HIGHEST_NUMBER)
    column[torch.randperm(n, generator=generator)[: n // 2]] = 0
    x = torch.nn.functional.one_hot(column, num_classes=HIGHEST_NUMBER + 2).float()

    order = torch.randperm(n, generator=generator)
    masks = torch.zeros(3, n, dtype=torch.bool)
    for mine in (0, 1):
        cells = order[y[order] == mine]
        parts = cells.tensor_split([len(cells) // 2, len(cells) * 3 // 4])
        for mask, part in zip(masks, parts, strict=True):
            mask[part] = True
    cell = torch.arange(n)
    return Data(
        x=x,
        edge_index=edge_index,
        y=y,
        train_mask=masks[0],
        val_mask=masks[1],
        test_mask=masks[2],
        pos=torch.stack([cell // size, cell % size], dim=1),
    )
