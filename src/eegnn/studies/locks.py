"""Sharing work among processes: who does what is held by locks, which die with their holder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows: nothing is shared there
    fcntl = None  # type: ignore[assignment]


class Locks:
    """Locks of one file, a byte each, that processes of one machine see.

    The system lets go of a lock when its process ends, however it ends: nothing has to be renewed,
    nothing expires, and nothing is left behind. Where the system has no such locks, all are free.

    Args:
        path: the file, which stays empty.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)

    @contextmanager
    def hold(self, key: str) -> Iterator[bool]:
        """Try to be the one who holds ``key``, hexadecimal digits; yield whether it worked."""
        if fcntl is None:
            yield True
            return
        place = int(key[:15], 16)  # an offset has 63 bits
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
        except OSError:
            yield False
            return
        try:
            yield True
        finally:
            fcntl.lockf(self._file, fcntl.LOCK_UN, 1, place)

    def close(self) -> None:
        """Let go of everything."""
        os.close(self._file)


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Wait until no other process has this file to itself, and keep it so; it is made if needed."""
    with path.open("ab") as file:
        if fcntl is not None:
            # Not the kind of lock above: that would go as soon as the file is read and closed.
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
