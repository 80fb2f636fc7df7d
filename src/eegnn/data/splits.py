"""Who is trained on, who is validated on, who is tested on.

Each function takes the data sets as opened by PyG, the number of the split and the data folder.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

SEED = 0  # of the splits we draw where the published ones are not at hand
FOLDS = 10


class Split(NamedTuple):
    """Indices of nodes or graphs, and where they come from."""

    train: Tensor
    val: Tensor
    test: Tensor
    note: str


Splitter = Callable[[Sequence[Any], int, Path], Split]


def masks(which: str) -> Splitter:
    """Take the masks that came with the graph, one column for each split."""

    def split(datasets: Sequence[Any], number: int, root: Path) -> Split:
        data = datasets[0][0]
        train, val, test = (
            (mask if mask.dim() == 1 else mask[:, number]).nonzero().flatten()
            for mask in (data.train_mask, data.val_mask, data.test_mask)
        )
        return Split(train, val, test, f"split {number} of {which}")

    return split


def parts(datasets: Sequence[Any], number: int, root: Path) -> Split:
    """Take the three parts as they were opened, one after the other."""
    ends = [len(part) for part in datasets]
    train, val, test = torch.arange(sum(ends)).split(ends)
    return Split(train, val, test, "the published parts")


def ogb(datasets: Sequence[Any], number: int, root: Path) -> Split:
    """Take the split of the Open Graph Benchmark."""
    index = datasets[0].get_idx_split()
    return Split(index["train"], index["valid"], index["test"], "the published OGB split")


def fixed(file: str) -> Splitter:
    """Take the 60/20/20 split of a file below ``root``, or draw a stratified one.

    The file is an ``.npz`` with the arrays ``train``, ``valid`` and ``test``.
    """

    def split(datasets: Sequence[Any], number: int, root: Path) -> Split:
        path = root / file
        if path.is_file():
            with np.load(path) as stored:
                train, val, test = (
                    torch.from_numpy(stored[part]) for part in ("train", "valid", "test")
                )
            return Split(train, val, test, f"60/20/20 of tunedGNN and Polynormer ({file})")
        train, rest = _stratified(datasets[0][0].y, share=0.4)
        val, test = _stratified(datasets[0][0].y, share=0.5, among=rest)
        return Split(train, val, test, f"60/20/20, our own, stratified, seed {SEED}")

    return split


def folds(file: str) -> Splitter:
    """Take the ten folds of a file below ``root``, or draw stratified ones.

    The file is a list of ``{"test": […], "model_selection": [{"train": […], "validation":
    […]}]}``; the first model selection counts, as in Co-GNN.
    """

    def split(datasets: Sequence[Any], number: int, root: Path) -> Split:
        path = root / file
        if path.is_file():
            fold = json.loads(path.read_text())[number]
            selection = fold["model_selection"][0]
            return Split(
                torch.tensor(selection["train"]),
                torch.tensor(selection["validation"]),
                torch.tensor(fold["test"]),
                f"fold {number} of Co-GNN ({file})",
            )
        y = torch.cat([data.y for data in datasets[0]])
        return draw_folds(y, number)

    return split


def draw_folds(y: Tensor, number: int) -> Split:
    """Draw ten stratified folds, and a tenth of what is not tested for validation."""
    from sklearn.model_selection import StratifiedKFold

    tenfold = StratifiedKFold(FOLDS, shuffle=True, random_state=SEED)
    rest, test = list(tenfold.split(np.zeros(len(y)), y.numpy()))[number]
    train, val = _stratified(y, share=0.1, among=torch.from_numpy(rest))
    note = f"fold {number} of {FOLDS}, our own, stratified, seed {SEED}"
    return Split(train, val, torch.from_numpy(test), note)


def _stratified(y: Tensor, share: float, among: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Set a share aside, with the classes in equal proportions."""
    from sklearn.model_selection import train_test_split

    index = np.arange(len(y)) if among is None else among.numpy()
    kept, aside = train_test_split(
        index, test_size=share, stratify=y.numpy()[index], random_state=SEED
    )
    return torch.from_numpy(np.sort(kept)), torch.from_numpy(np.sort(aside))
