"""Named arrays in one ``.npz`` file: nothing executable, written whole, cached under a hash."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eegnn.io import write_atomically

Arrays = dict[str, NDArray[Any]]
CHECKSUM = "sha256"


def read_arrays(path: Path) -> Arrays:
    """Read every array of a file.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is no ``.npz`` file, is damaged, or holds Python objects, which are never
            unpickled.
    """
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist")
    if not zipfile.is_zipfile(path):
        raise ValueError(f"{path} is not an .npz file, or it is damaged: it was perhaps cut short")
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
        raise ValueError(f"{path} is damaged: {key} cannot be read ({error})") from error
    for key, array in arrays.items():
        if not isinstance(array, np.ndarray):
            raise ValueError(f"{path} is damaged: {key} is not an array")
    return arrays


def map_array(path: Path) -> NDArray[Any]:
    """Open an ``.npy`` file without reading it: what is looked at is read when it is looked at.

    What is written to the array stays in memory; the file does not change.
    """
    try:
        return np.load(path, mmap_mode="c", allow_pickle=False)
    except Exception as error:  # as above, and numpy maps no empty array
        raise ValueError(f"{path} is damaged, empty, or no .npy file ({error})") from error


def write_arrays(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write a file that :func:`read_arrays` reads, whole or not at all."""
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **arrays)
    write_atomically(path, buffer.getvalue())


def cached(
    root: Path | None, name: str, parameters: Mapping[str, Any], build: Callable[[], Arrays]
) -> Arrays:
    """Take arrays from ``root/name/<hash of the parameters>.npz``, or build and put them there.

    A damaged file is built anew: a checksum over the content decides.

    Args:
        root: the cache folder; ``None``: always build.
        name: a subfolder.
        parameters: all that the arrays depend on, including a version of the code, as JSON takes.
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
