from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest
import torch

from eegnn.engine.blocked.states import new_states


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("kept", [0, 2**28])
def test_states_are_zeros_that_can_be_written(
    dtype: torch.dtype, kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eegnn.engine.blocked.states.KEPT", kept)
    states, truth = new_states(5000, 7, dtype), torch.randn(5000, 7, dtype=dtype)
    assert states.dtype == dtype
    assert torch.equal(states, torch.zeros_like(truth))
    gc.collect()  # what is mapped stays as long as the tensor
    states[:2500] = truth[:2500]
    states[2500:] = truth[2500:]
    assert torch.equal(states, truth)


def test_nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eegnn.engine.blocked.states.KEPT", 0)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    new_states(100, 4, torch.float32).fill_(1)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("shape", [(0, 4), (3, 0)])
def test_there_may_be_no_entries(shape: tuple[int, int]) -> None:
    assert new_states(*shape, torch.float32).shape == shape
