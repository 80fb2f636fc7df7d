"""One's own split: masks, indices, or, where there is neither, a seeded one."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from eegnn import _check
from eegnn.data.arrays import Arrays
from eegnn.data.own_graphs import in_range, integers

PARTS = ("train", "val", "test")
MASKS = ("train_mask", "val_mask", "test_mask")

Parts = tuple[Tensor, Tensor, Tensor]


def split_from_arrays(where: str, arrays: Arrays, units: int, split: int) -> tuple[Parts, str]:
    """Indices of training, validation and test, and a sentence on where they come from.

    Args:
        where: what error messages begin with.
        arrays: see :func:`eegnn.data.npz.read_npz`.
        units: how many nodes, or graphs, are to be divided.
        split: which column of masks with several; for a seeded split, the seed.
    """
    _check.integer("split", split, at_least=0)
    masks, indices = _given(where, arrays, MASKS), _given(where, arrays, PARTS)
    if masks and indices:
        raise ValueError(f"{where}: give either masks or indices, not both")
    if not masks and not indices:
        return seeded_split(where, units, split), f"60/20/20 at random, seed {split}"
    if masks:
        columns = any(arrays[key].ndim == 2 for key in MASKS)
        found = [_mask(where, arrays, key, units, split) for key in MASKS]
    else:
        columns = False
        found = [integers(where, arrays, key, dimensions=1) for key in PARTS]
    if split > 0 and not columns:
        raise ValueError(f"{where}: there is one split, number 0, but split {split} was asked for")
    for key, index in zip(MASKS if masks else PARTS, found, strict=True):
        if index.size == 0:
            raise ValueError(f"{where}: {key} is empty")
        in_range(where, key, index, units, "that many can be chosen")
        if len(np.unique(index)) != len(index):
            raise ValueError(f"{where}: {key} must not hold an index twice")
    _refuse_overlap(where, found)
    train, val, test = (torch.from_numpy(index) for index in found)
    return (train, val, test), f"given, number {split}"


def seeded_split(where: str, units: int, seed: int) -> Parts:
    """60 % for training, 20 % each for validation and test, at random, each at least one."""
    if units < len(PARTS):
        raise ValueError(f"{where}: to split {units} into train, val and test, three are needed")
    fifth = max(1, round(0.2 * units))
    order = torch.randperm(units, generator=torch.Generator().manual_seed(seed))
    train, val, test = order.split([units - 2 * fifth, fifth, fifth])
    return train.sort().values, val.sort().values, test.sort().values


def _given(where: str, arrays: Arrays, keys: tuple[str, ...]) -> bool:
    present = [key for key in keys if key in arrays]
    if present and len(present) < len(keys):
        missing = ", ".join(key for key in keys if key not in arrays)
        raise ValueError(f"{where}: {present[0]} is given, but {missing} is missing")
    return bool(present)


def _mask(where: str, arrays: Arrays, key: str, units: int, split: int) -> NDArray[np.int64]:
    mask = arrays[key]
    if mask.dtype != np.bool_:
        raise TypeError(f"{where}: {key} must be boolean, got {mask.dtype}")
    if mask.ndim not in (1, 2) or len(mask) != units:
        raise ValueError(
            f"{where}: {key} must have shape [{units}] or [{units}, splits], got {list(mask.shape)}"
        )
    if mask.ndim == 2:
        if split >= mask.shape[1]:
            raise ValueError(
                f"{where}: {key} has {mask.shape[1]} splits, but split {split} was asked for"
            )
        mask = mask[:, split]
    return np.flatnonzero(mask).astype(np.int64)


def _refuse_overlap(where: str, found: list[NDArray[np.int64]]) -> None:
    for (a, first), (b, second) in combinations(zip(PARTS, found, strict=True), 2):
        shared = np.intersect1d(first, second)
        if shared.size:
            raise ValueError(f"{where}: {a} and {b} must not overlap, but share {shared[0]}")
