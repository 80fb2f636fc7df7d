from __future__ import annotations

import sys

import pytest
import torch

from eegnn.bench.resident import resident


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux tells")
def test_memory_that_is_touched_counts() -> None:
    before = resident("VmRSS")
    held = torch.ones(16 * 1024 * 1024)  # 64 MB
    after, most = resident("VmRSS"), resident("VmHWM")
    assert before is not None
    assert after is not None
    assert most is not None
    assert after - before > 0.9 * held.nbytes
    assert most >= after
