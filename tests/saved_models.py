"""A model on disk, for the tests of reading and writing."""

from __future__ import annotations

from pathlib import Path

import torch

from eegnn import EEGNN, save


def path(tmp_path: Path) -> Path:
    return tmp_path / "model.safetensors"


def saved(path: Path) -> Path:
    torch.manual_seed(0)
    save(EEGNN(3, 8, 2, 5), path)
    return path


def description(path: Path) -> Path:
    return path.with_suffix(".json")
