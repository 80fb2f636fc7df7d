from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

from eegnn.engine.blocked.states import StateFile


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_values_outlive_their_pages(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eegnn.engine.blocked.states.KEPT", 0)
    states, truth = StateFile(5000, 7, dtype), torch.randn(5000, 7, dtype=dtype)
    assert torch.equal(states.values, torch.zeros_like(truth))
    states.values[:2500] = truth[:2500]
    states.release()
    states.values[2500:] = truth[2500:]
    states.release()
    assert torch.equal(states.values, truth)


def test_nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    states = StateFile(100, 4, torch.float32)
    states.values.fill_(1)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("shape", [(0, 4), (3, 0)])
def test_there_may_be_no_entries(shape: tuple[int, int]) -> None:
    states = StateFile(*shape, torch.float32)
    states.release()
    assert states.values.shape == shape
