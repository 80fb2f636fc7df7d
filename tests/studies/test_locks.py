from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from eegnn.studies.locks import Locks

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
KEY = "0123456789abcdef" * 4


def process_that_holds(path: Path, key: str) -> int:
    """Start a process that takes a lock and waits; return its id once it has it."""
    seen, tell = os.pipe()
    child = os.fork()
    if child == 0:
        with Locks(path).hold(key) as mine:
            os.write(tell, b"1" if mine else b"0")
            signal.pause()
    assert os.read(seen, 1) == b"1"
    os.close(seen)
    os.close(tell)
    return child


def test_a_lock_is_held_by_one_process_and_dies_with_it(tmp_path: Path) -> None:
    child = process_that_holds(tmp_path / "locks", KEY)
    locks = Locks(tmp_path / "locks")
    try:
        with locks.hold(KEY) as mine:
            assert not mine
        with locks.hold("f" + KEY) as mine:
            assert mine
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    with locks.hold(KEY) as mine:
        assert mine
    locks.close()


def test_a_lock_is_free_again_when_the_work_is_done_or_fails(tmp_path: Path) -> None:
    locks = Locks(tmp_path / "new" / "locks")
    with pytest.raises(KeyError), locks.hold(KEY):
        raise KeyError
    child = process_that_holds(tmp_path / "new" / "locks", KEY)  # would fail
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    locks.close()
