"""Which nodes or graphs are for training, for validation and for testing.

The first functions are for data sets of the registry: they take the data sets as PyG opens them,
the number of the split and the data folder. The others are for one's own data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from typing_extensions import TypedDict

from eegnn import _check, _json
from eegnn.data.arrays import NamedArrays, read_arrays
from eegnn.data.download import copy_from_mirror

SEED = 0  # of the splits that are drawn here where the published ones are missing
FOLDS = 10
PARTS = ("train", "val", "test")
MASKS = ("train_mask", "val_mask", "test_mask")


class Split(NamedTuple):
    """Indices of nodes or graphs, and a sentence on where they come from."""

    train: Tensor
    val: Tensor
    test: Tensor
    note: str


class _Selection(TypedDict):
    train: list[int]
    validation: list[int]


class _Fold(TypedDict):
    test: list[int]
    model_selection: list[_Selection]


Splitter = Callable[[Sequence[Any], int, Path], Split]


def masks(source: str, datasets: Sequence[Any], number: int, root: Path) -> Split:
    """Take the masks that came with the graph, one column for each split."""
    data = datasets[0][0]
    train, val, test = (
        (mask if mask.dim() == 1 else mask[:, number]).nonzero().flatten()
        for mask in (data.train_mask, data.val_mask, data.test_mask)
    )
    return Split(train, val, test, f"split {number} of {source}")


def parts(datasets: Sequence[Any], number: int, root: Path) -> Split:
    """Take the three data sets, one after the other, as training, validation and test."""
    sizes = [len(part) for part in datasets]
    train, val, test = torch.arange(sum(sizes)).split(sizes)
    return Split(train, val, test, "the published parts")


def ogb(datasets: Sequence[Any], number: int, root: Path) -> Split:
    """Take the split of the Open Graph Benchmark."""
    index = datasets[0].get_idx_split()
    return Split(index["train"], index["valid"], index["test"], "the published OGB split")


def fixed(file: str, datasets: Sequence[Any], number: int, root: Path) -> Split:
    """Take the 60/20/20 split of a file below ``root``, or draw a stratified one.

    The file is an ``.npz`` with the arrays ``train``, ``valid`` and ``test``.
    """
    copy_from_mirror(file, root=root)
    if (root / file).is_file():
        stored = NamedArrays(str(root / file), read_arrays(root / file))
        train, val, test = (
            torch.from_numpy(stored.integers(key, ndim=1)) for key in ("train", "valid", "test")
        )
        return Split(train, val, test, f"60/20/20 of tunedGNN and Polynormer ({file})")
    y = datasets[0][0].y
    train, rest = _stratified(y, torch.arange(len(y)), share=0.4)
    val, test = _stratified(y, rest, share=0.5)
    return Split(train, val, test, f"60/20/20, our own, stratified, seed {SEED}")


def folds(file: str, datasets: Sequence[Any], number: int, root: Path) -> Split:
    """Take a fold of a file below ``root``, or draw ten stratified ones.

    The file is a list of ``{"test": […], "model_selection": [{"train": […], "validation":
    […]}]}``; the first model selection counts, as in Co-GNN. In folds that are drawn, a tenth of
    the graphs that are not tested is for validation.
    """
    from sklearn.model_selection import StratifiedKFold

    copy_from_mirror(file, root=root)
    if (root / file).is_file():
        fold = _json.read(root / file, list[_Fold])[number]
        selection = fold["model_selection"][0]
        indices = (selection["train"], selection["validation"], fold["test"])
        train, val, test = map(torch.tensor, indices)
        return Split(train, val, test, f"fold {number} of Co-GNN ({file})")
    y = torch.cat([data.y for data in datasets[0]])
    tenfold = StratifiedKFold(FOLDS, shuffle=True, random_state=SEED)
    rest, tested = list(tenfold.split(np.zeros(len(y)), y.numpy()))[number]
    train, val = _stratified(y, torch.from_numpy(rest), share=0.1)
    note = f"fold {number} of {FOLDS}, our own, stratified, seed {SEED}"
    return Split(train, val, torch.from_numpy(tested), note)


def _stratified(y: Tensor, index: Tensor, share: float) -> tuple[Tensor, Tensor]:
    """Divide indices so that the second part is a share, with the classes in equal proportions."""
    from sklearn.model_selection import train_test_split

    kept, aside = train_test_split(
        index.numpy(), test_size=share, stratify=y[index].numpy(), random_state=SEED
    )
    return torch.from_numpy(np.sort(kept)), torch.from_numpy(np.sort(aside))


def random_split(source: str, units: int, seed: int) -> Split:
    """60 % for training, 20 % each for validation and test, at random, each at least one."""
    if units < len(PARTS):
        raise ValueError(f"{source}: to split {units} into train, val and test, three are needed")
    fifth = max(1, round(0.2 * units))
    order = torch.randperm(units, generator=torch.Generator().manual_seed(seed))
    train, val, test = (
        part.sort().values for part in order.split([units - 2 * fifth, fifth, fifth])
    )
    return Split(train, val, test, f"60/20/20 at random, seed {seed}")


def split_from_arrays(arrays: NamedArrays, units: int, split: int) -> Split:
    """Take the masks or indices of an ``.npz`` file; without either, draw a random split.

    Of ``units`` nodes, or graphs. ``split`` is the column of masks with several; for a random
    split, the seed.
    """
    _check.integer("split", split, at_least=0)
    source = arrays.source
    has_masks, has_indices = _has_all(arrays, MASKS), _has_all(arrays, PARTS)
    if has_masks and has_indices:
        raise ValueError(f"{source}: give either masks or indices, not both")
    if not has_masks and not has_indices:
        return random_split(source, units, split)
    keys = MASKS if has_masks else PARTS
    if split > 0 and not any(arrays[key].ndim == 2 for key in keys):
        raise ValueError(f"{source}: there is one split, number 0, but split {split} was asked for")
    indices = []
    for key in keys:
        index = _mask(arrays, key, units, split) if has_masks else arrays.integers(key, ndim=1)
        if index.size == 0:
            raise ValueError(f"{source}: {key} is empty")
        arrays.check_range(key, index, units, "that many can be chosen")
        if len(np.unique(index)) != len(index):
            raise ValueError(f"{source}: {key} must not hold an index twice")
        indices.append(index)
    for (a, first), (b, second) in combinations(zip(PARTS, indices, strict=True), 2):
        shared = np.intersect1d(first, second)
        if shared.size:
            raise ValueError(f"{source}: {a} and {b} must not overlap, but share {shared[0]}")
    train, val, test = map(torch.from_numpy, indices)
    return Split(train, val, test, f"given, number {split}")


def _has_all(arrays: NamedArrays, keys: tuple[str, ...]) -> bool:
    present = [key for key in keys if key in arrays]
    if present and len(present) < len(keys):
        missing = ", ".join(key for key in keys if key not in arrays)
        raise ValueError(f"{arrays.source}: {present[0]} is given, but {missing} is missing")
    return bool(present)


def _mask(arrays: NamedArrays, key: str, units: int, split: int) -> NDArray[np.int64]:
    """Return the indices where a mask, or its column of this number, is true."""
    mask, source = arrays[key], arrays.source
    if mask.dtype != np.bool_:
        raise TypeError(f"{source}: {key} must be boolean, got {mask.dtype}")
    if mask.ndim not in (1, 2) or len(mask) != units:
        shape = list(mask.shape)
        raise ValueError(
            f"{source}: {key} must have shape [{units}] or [{units}, splits], got {shape}"
        )
    if mask.ndim == 2:
        if split >= mask.shape[1]:
            raise ValueError(
                f"{source}: {key} has {mask.shape[1]} splits, but split {split} was asked for"
            )
        mask = mask[:, split]
    return np.flatnonzero(mask).astype(np.int64)
