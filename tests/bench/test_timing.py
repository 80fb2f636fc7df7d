from __future__ import annotations

import pytest
import torch

from eegnn.bench import timing
from eegnn.compute import Compute


def test_calls_take_turns_after_warming_up(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[str] = []
    durations = {"fast": iter([9.0, 1.0, 5.0, 2.0]), "other": iter([1.0, 3.0, 3.0, 4.0])}

    def seconds(call: object, compute: Compute) -> float:
        name = call()  # type: ignore[operator]
        called.append(name)
        return next(durations[name])

    monkeypatch.setattr(timing, "seconds", seconds)
    monkeypatch.setattr(timing, "SLOW", 100.0)
    found = timing.medians({"fast": lambda: "fast", "other": lambda: "other"}, 3)
    assert called == ["fast", "other"] * 4
    assert found == {"fast": 2.0, "other": 3.0}


def test_slow_calls_take_a_tenth_of_the_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    count = {"slow": 0, "fast": 0}

    def seconds(call: object, compute: Compute) -> float:
        name = call()  # type: ignore[operator]
        count[name] += 1
        return 3.0 if name == "slow" else 0.1

    monkeypatch.setattr(timing, "seconds", seconds)
    timing.medians({"slow": lambda: "slow", "fast": lambda: "fast"}, 20)
    assert count == {"slow": 3, "fast": 21}


def test_the_number_of_threads_is_restored() -> None:
    before = torch.get_num_threads()
    with timing.use_threads(before + 1):
        assert torch.get_num_threads() == before + 1
    assert torch.get_num_threads() == before
