"""Computed arrays, kept in files that are found again by the parameters they were made with."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eegnn.data.arrays import Arrays, read_arrays, write_arrays

CHECKSUM = "sha256"


def cached(
    root: Path | None, name: str, parameters: Mapping[str, Any], build: Callable[[], Arrays]
) -> Arrays:
    """Read arrays from ``root/name/<hash of the parameters>.npz``, or build and write them.

    A file whose content does not match its checksum is built again.

    Args:
        root: the cache folder; ``None``: always build.
        name: a subfolder.
        parameters: all that the arrays depend on, including a version of the code; JSON values.
        build: makes the arrays.
    """
    if root is None:
        return build()
    key = hashlib.sha256(json.dumps(parameters, sort_keys=True).encode()).hexdigest()[:16]
    path = root / name / f"{key}.npz"
    if path.is_file():
        try:
            arrays = read_arrays(path)
        except ValueError:
            arrays = {}
        checksum = arrays.pop(CHECKSUM, None)
        if checksum is not None and str(checksum) == digest(arrays):
            return arrays
    arrays = build()
    write_arrays(path, {**arrays, CHECKSUM: np.array(digest(arrays))})
    return arrays


def digest(arrays: Mapping[str, NDArray[Any]]) -> str:
    """SHA-256 over names, types, shapes and values."""
    total = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        total.update(f"{name} {array.dtype.str} {list(array.shape)};".encode())
        total.update(array.tobytes())
    return total.hexdigest()
