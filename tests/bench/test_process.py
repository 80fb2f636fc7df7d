from __future__ import annotations

import mmap
import os
import sys

import pytest
import torch

from eegnn.bench.process import in_new_process, resident_bytes

SIZE = 64 * 1024 * 1024


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux reports it")
def test_memory_that_is_touched_counts() -> None:
    before = resident_bytes("VmRSS")
    held = mmap.mmap(-1, SIZE)  # new pages, whatever the allocator has in store
    held.write(b"1" * SIZE)
    after, most = resident_bytes("VmRSS"), resident_bytes("VmHWM")
    assert after - before > 0.9 * SIZE
    assert most >= after


def test_a_new_process_has_as_many_threads() -> None:
    assert in_new_process(os.getpid) != os.getpid()
    assert in_new_process(torch.get_num_threads) == torch.get_num_threads()
