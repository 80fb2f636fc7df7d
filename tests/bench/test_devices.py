"""Benchmarks on a device that is not the CPU."""

from __future__ import annotations

from typing import Any

import pytest

from eegnn._spmm import CSR_DEVICES
from eegnn.bench import inference, memory, timing, training
from eegnn.compute import Compute
from tests.accelerator import DEVICE, recorded
from tests.bench.inputs import small_graph
from tests.bench.test_training import small_graphs

COMPUTE = Compute(DEVICE)


def test_inference_is_measured_where_there_are_csr_products(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(inference, "benchmark_graph", small_graph)
    with pytest.raises(ValueError, match="device must multiply CSR matrices"):
        inference.compare(["tolokers"], [2], passes=1, compute=COMPUTE)
    for module in ("eegnn._spmm", inference.__name__):
        monkeypatch.setattr(f"{module}.CSR_DEVICES", CSR_DEVICES | {"simulated"})
    # PyG asks for the layout of a matrix, which a simulated one cannot tell.
    monkeypatch.setattr(inference, "normalized_csr", lambda adj: adj.edge_index)
    rows = inference.compare(["tolokers"], [2], passes=1, compute=COMPUTE)
    assert len(rows) == 8
    assert all(row.seconds > 0 for row in rows)


def test_training_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "graphs", small_graphs)
    rows = training.compare(passes=1, compute=COMPUTE)
    assert all(row.difference < 1e-5 for row in rows)


def test_memory_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    def peak(function: Any, compute: Compute, *args: Any) -> int:
        assert compute == COMPUTE
        assert args[0].device.type == "cpu"  # what is sent to another process
        return 1

    monkeypatch.setattr(memory, "benchmark_graph", small_graph)
    monkeypatch.setattr(memory, "in_new_process", peak)
    monkeypatch.setattr(memory, "saved_bytes", lambda *_: 1)  # by addresses, of which it has none
    rows = memory.compare("tolokers", [2], passes=1, compute=COMPUTE)
    assert [row.peak for row in rows] == [(1, 1), (1, 1)]


def test_the_clock_waits_for_the_device() -> None:
    with recorded() as waits:
        timing.seconds(lambda: None, COMPUTE)
    assert waits == {"synchronize": 1}
