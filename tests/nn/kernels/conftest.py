"""A graph, and one thread or two."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from eegnn import Adjacency
from tests.nn.kernels.examples import random_edge_index

numba: Any = pytest.importorskip("numba")
machine: Any = pytest.importorskip("eegnn.nn.kernels.machine")


@pytest.fixture
def graph() -> Adjacency:
    return Adjacency.from_edge_index(random_edge_index(60, 150), 60)


@pytest.fixture(params=[1, 2], ids=["one thread", "two threads"])
def threads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Whatever the size, so many threads compute."""
    monkeypatch.setattr(machine, "PARALLEL_SIZE", 0)
    before, numba_before = torch.get_num_threads(), numba.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)
    assert numba.get_num_threads() == numba_before
