from __future__ import annotations

import mmap
import sys

import pytest

from eegnn.bench.resident import resident

SIZE = 64 * 1024 * 1024


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux tells")
def test_memory_that_is_touched_counts() -> None:
    before = resident("VmRSS")
    held = mmap.mmap(-1, SIZE)  # new pages, whatever the allocator has in store
    held.write(b"1" * SIZE)
    after, most = resident("VmRSS"), resident("VmHWM")
    assert before is not None
    assert after is not None
    assert most is not None
    assert after - before > 0.9 * SIZE
    assert most >= after
