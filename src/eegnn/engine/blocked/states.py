"""States of all nodes in a temporary file, of which memory holds what is being looked at."""

from __future__ import annotations

import mmap
import tempfile

import torch

#: Bytes that may stay in memory: mapping pages anew for each block took a fifth of the time of a
#: block of 10,000 nodes (2.5 of 12 ms).
KEPT = 2**28


class StateFile:
    """A matrix in a temporary file, mapped into memory; the file goes when this goes.

    It is in the folder that ``TMPDIR`` names. Pages that were read or written stay in the memory
    of the process until :meth:`release`; after that they are the operating system's, to keep or
    to write to disk as it sees fit. Less than 256 MB are kept in memory, without a file.

    Args:
        rows, columns: the shape.
        dtype: of the entries, which are 0 at first.

    Attributes:
        values: the matrix, as a tensor that reads from the file and writes to it.
    """

    def __init__(self, rows: int, columns: int, dtype: torch.dtype) -> None:
        size = rows * columns * dtype.itemsize
        self._map: mmap.mmap | None = None
        if size <= KEPT:
            self.values = torch.zeros(rows, columns, dtype=dtype)
            return
        with tempfile.TemporaryFile() as file:
            file.truncate(size)
            self._map = mmap.mmap(file.fileno(), size)
        self.values = torch.frombuffer(self._map, dtype=dtype).view(rows, columns)

    def release(self) -> None:
        """Let go of the pages in memory; the values stay."""
        if self._map is not None and hasattr(mmap, "MADV_DONTNEED"):  # not on Windows
            self._map.madvise(mmap.MADV_DONTNEED)
