"""Named arrays in ``.npz`` files: checked, read without pickles, written atomically, cached."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eegnn._check import listed, reason
from eegnn.io import check_archive, is_archive, write_atomically

Arrays = dict[str, NDArray[Any]]

INTEGERS, FLOATS = "iu", "f"  # kinds of NumPy's types
CHECKSUM = "sha256"
_ROWS = 2**16


@dataclass(frozen=True)
class NamedArrays:
    """Arrays by name, and the checks that they have the right type, shape and values."""

    source: str  #: what error messages begin with, such as the name of a file
    arrays: Arrays

    def __contains__(self, key: str) -> bool:
        return key in self.arrays

    def __getitem__(self, key: str) -> NDArray[Any]:
        if key not in self.arrays:
            raise ValueError(f"{self.source}: {key} is missing; there is {listed(self.arrays)}")
        return self.arrays[key]

    def integers(self, key: str, ndim: int) -> NDArray[np.int64]:
        """Return an array as ``int64``."""
        array = self[key]
        if array.dtype.kind not in INTEGERS:
            raise TypeError(f"{self.source}: {key} must hold integers, got {array.dtype}")
        self._check_ndim(key, ndim)
        return array.astype(np.int64)

    def features(self, key: str, categorical: bool) -> NDArray[np.float32]:
        """Return a finite matrix as ``float32``; integers only where there may be categories.

        One that is mapped from a file must have this type already, and stays there.
        """
        array = self[key]
        if array.dtype.kind not in (INTEGERS + FLOATS if categorical else FLOATS):
            raise TypeError(
                f"{self.source}: {key} must be floating point, got {array.dtype}: "
                f"use .astype('float32')"
            )
        self._check_ndim(key, 2)
        if not isinstance(array, np.memmap):
            with np.errstate(over="ignore"):  # what float32 cannot hold becomes infinite
                array = array.astype(np.float32)
        elif array.dtype != np.float32:
            raise TypeError(
                f"{self.source}: {key} in a file of its own must be float32, got {array.dtype}"
            )
        self.check_finite(key, array)
        return array

    def check_finite(self, key: str, array: NDArray[Any]) -> None:
        """Refuse NaN and infinity."""
        for start in range(0, len(array), _ROWS):  # so that a large array needs no second one
            finite = np.isfinite(array[start : start + _ROWS])
            if not finite.all():
                row = start + int(np.argwhere(~finite)[0][0])
                raise ValueError(
                    f"{self.source}: {key} holds NaN or infinite values, first in row {row}"
                )

    def check_range(self, key: str, index: NDArray[np.int64], count: int, why: str) -> None:
        """Refuse indices outside ``0 … count − 1``."""
        outside = (index < 0) | (index >= count)
        if outside.any():
            raise ValueError(
                f"{self.source}: {key} must lie in 0 … {count - 1} ({why}), got {index[outside][0]}"
            )

    def _check_ndim(self, key: str, ndim: int) -> None:
        if self[key].ndim != ndim:
            raise ValueError(
                f"{self.source}: {key} must have {ndim} dimensions, got {self[key].ndim}"
            )


def read_arrays(path: Path) -> Arrays:
    """Read every array of a file; Python objects are never unpickled."""
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist")
    if not is_archive(path):
        raise ValueError(f"{path} is not an .npz file, or it is damaged: it was perhaps cut short")
    check_archive(path, str(path))
    arrays: Arrays = {}
    key = "its table of contents"
    # Bytes from anywhere make the zip and .npy parsers raise a dozen kinds of exception.
    try:
        with np.load(path, allow_pickle=False) as file:
            for key in file.files:
                arrays[key] = file[key]
    except Exception as error:
        if "allow_pickle" in str(error):
            raise ValueError(
                f"{path}: {key} holds Python objects, which are never loaded; save it as numbers"
            ) from error
        raise ValueError(f"{path} is damaged: {key} cannot be read ({reason(error)})") from error
    for key, array in arrays.items():
        if not isinstance(array, np.ndarray):
            raise ValueError(f"{path} is damaged: {key} is not an array")
    return arrays


def map_array(path: Path) -> NDArray[Any]:
    """Map an ``.npy`` file into memory, copy on write: rows are read when they are used."""
    try:
        return np.lib.format.open_memmap(path, mode="c")
    except Exception as error:  # as above, and numpy maps no empty array
        raise ValueError(f"{path} is damaged, empty, or no .npy file ({reason(error)})") from error


def write_arrays(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write a file that :func:`read_arrays` reads, completely or not at all."""
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **arrays)
    write_atomically(path, buffer.getvalue())


def cached(
    root: Path | None, name: str, parameters: Mapping[str, Any], build: Callable[[], Arrays]
) -> Arrays:
    """Read arrays from ``root/name/<hash of the parameters>.npz``, or build and write them.

    A damaged file is replaced. A checksum over all arrays decides: those of the zip format do not
    notice when damage to its directory hides an array.

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
    with suppress(FileNotFoundError, ValueError):
        arrays = read_arrays(path)
        if str(arrays.pop(CHECKSUM, None)) == digest(arrays):
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
