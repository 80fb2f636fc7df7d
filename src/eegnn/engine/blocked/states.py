"""Where the states of all nodes are: in memory, or in a temporary file."""

from __future__ import annotations

import mmap
import tempfile

import torch
from torch import Tensor

#: Bytes of states that are in memory; more are in a file.
KEPT = 2**28


def new_states(rows: int, columns: int, dtype: torch.dtype) -> Tensor:
    """Return a matrix of zeros; of more than 256 MB, one that is mapped from a temporary file.

    The file is in the folder that ``TMPDIR`` names, and goes when the matrix goes. Its pages are
    the operating system's, which writes them to disk when memory is short.
    """
    size = rows * columns * dtype.itemsize
    if size <= KEPT:
        return torch.zeros(rows, columns, dtype=dtype)
    with tempfile.TemporaryFile() as file:
        file.truncate(size)
        mapped = mmap.mmap(file.fileno(), size)
    return torch.frombuffer(mapped, dtype=dtype).view(rows, columns)
